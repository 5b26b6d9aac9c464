# Generates the C++ of the plan's FlatBuffers schema: "dovetail/runtime/plan_generated.h".
# Link DovetailPlanSchema to use it.

set(dovetail_plan_schema "${PROJECT_SOURCE_DIR}/runtime/schema/plan.fbs")
set(dovetail_plan_header "${PROJECT_BINARY_DIR}/include/dovetail/runtime/plan_generated.h")

add_custom_command(
  OUTPUT "${dovetail_plan_header}"
  COMMAND "${DOVETAIL_FLATC}" --cpp --cpp-std c++17 --scoped-enums --gen-object-api
          -o "${PROJECT_BINARY_DIR}/include/dovetail/runtime" "${dovetail_plan_schema}"
  DEPENDS "${dovetail_plan_schema}"
  COMMENT "Generating plan_generated.h"
  VERBATIM)
add_custom_target(DovetailPlanSchemaHeader DEPENDS "${dovetail_plan_header}")

add_library(DovetailPlanSchema INTERFACE)
target_link_libraries(DovetailPlanSchema INTERFACE DovetailHeaders flatbuffers::flatbuffers)
add_dependencies(DovetailPlanSchema DovetailPlanSchemaHeader)
