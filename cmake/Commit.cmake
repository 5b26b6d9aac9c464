# cmake -DSOURCE=folder -DOUTPUT=file -P Commit.cmake
#
# Writes a source file that says of which commit of git the folder is, unless the file says so already. A folder that
# only lies in a checkout of something else has no commit.

set(commit "unknown")
if(EXISTS "${SOURCE}/.git")
  execute_process(COMMAND git -C "${SOURCE}" rev-parse HEAD
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed AND found MATCHES "^[0-9a-f]+$")
    set(commit "${found}")
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
#include "dovetail/tools/Version.h"

const char *dovetail::tools::commit() { return "@commit@"; }
]])
