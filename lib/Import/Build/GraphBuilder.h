//===- GraphBuilder.h - Builds graphs ---------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines GraphBuilder, which builds and folds operations, with extents that vary, and reports.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_BUILD_GRAPHBUILDER_H
#define DOVETAIL_LIB_IMPORT_BUILD_GRAPHBUILDER_H

#include "Bounds.h"
#include "Constants.h"
#include "Reporter.h"
#include "UnsupportedParts.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail::importer {

/// An operand that may be absent, for builders of operations.
struct OptionalOperand {
  mlir::Value value;
};

/// Builds the operations of one node of a model, whatever the model's format.
///
/// Values are ranked tensors of static shape. A null value stands for a failure that has been reported. Every function
/// passes it on, so that only the results of a node need to be looked at. Operations fold as they are built.
class GraphBuilder {
public:
  struct Context {
    mlir::OpBuilder &builder;
    Reporter &reporter;
    Bounds &bounds;
    mlir::Location loc;
    /// The node in messages, and its operator.
    std::string name, kind;
  };

  explicit GraphBuilder(Context context) : context(std::move(context)) {}
  virtual ~GraphBuilder() = default;

  mlir::OpBuilder &getBuilder() { return context.builder; }
  mlir::Location getLoc() const { return context.loc; }

  // Values.

  static mlir::RankedTensorType getType(mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType());
  }
  static llvm::ArrayRef<int64_t> getShape(mlir::Value value) { return getType(value).getShape(); }
  static int64_t getRank(mlir::Value value) { return getType(value).getRank(); }
  /// The constant behind a value; null if it is not one.
  static mlir::ElementsAttr getConstant(mlir::Value value);
  /// `axis` in [0, rank), counted from the end if negative.
  llvm::FailureOr<int64_t> normalizeAxis(int64_t axis, int64_t rank);
  /// The same for several axes, which must differ. The result is not sorted.
  llvm::FailureOr<llvm::SmallVector<int64_t>> normalizeAxes(llvm::ArrayRef<int64_t> axes, int64_t rank);

  // Building.

  /// Result number `number` of an operation, or a constant in place of the operation where its operands are small
  /// constants.
  mlir::Value fold(mlir::Operation *op, unsigned number = 0);

  /// Builds an operation whose result type follows from `args`, those of its generated builder after the result type.
  template <typename OpT, typename... Args> mlir::Value create(Args &&...args) {
    return createAs<OpT>(mlir::Type(), std::forward<Args>(args)...);
  }
  /// Builds an operation of the given result type; null for an inferred one.
  template <typename OpT, typename... Args> mlir::Value createAs(mlir::Type type, Args &&...args) {
    if ((isMissing(args) || ...))
      return {};
    mlir::OperationState state(context.loc, OpT::getOperationName());
    OpT::build(context.builder, state, type ? type : mlir::Type(context.builder.getNoneType()),
               unwrap(std::forward<Args>(args))...);
    return finish(state);
  }
  /// Builds the operation that `state` describes, with one result, whose type is inferred if it can be.
  mlir::Value finish(mlir::OperationState &state);

  mlir::Value constant(mlir::ElementsAttr value);
  /// A vector of i64.
  mlir::Value constantInts(llvm::ArrayRef<int64_t> values);
  /// Floats of an f32 or f64 type.
  mlir::Value constantFloats(mlir::RankedTensorType type, llvm::ArrayRef<double> values);
  /// `number` in a tensor of rank 0, of the element type of `like`.
  mlir::Value scalarLike(mlir::Value like, double number);
  /// `size` successive numbers from `start` on, a vector of i64.
  mlir::Value count(int64_t start, int64_t size);
  /// The neutral element of `kind`, of the element type of `like`, in a tensor of rank 0.
  mlir::Value neutralLike(mlir::Value like, ReduceKind kind);
  /// `number` repeated in a tensor of `type`.
  mlir::Value splat(mlir::RankedTensorType type, double number);
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> permutation);
  /// Repeats dimensions of extent 1, aligned at the right.
  mlir::Value broadcast(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value slice(mlir::Value value, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes,
                    llvm::ArrayRef<int64_t> steps);
  /// Tensors of one shape along a new dimension `axis`; there must be one.
  mlir::Value stack(llvm::ArrayRef<mlir::Value> values, int64_t axis);
  /// As ONNX Cast does it where nothing else is said.
  mlir::Value cast(mlir::Value value, mlir::Type elementType);
  /// The same to a float of at most 8 bits or an integer of 2 or 4 bits; see `NarrowOp`.
  mlir::Value narrow(mlir::Value value, mlir::Type elementType, bool saturate, llvm::StringRef roundMode = "up");
  /// Floats of 16 bits as f32: sums of many do not fit into them.
  mlir::Value widen(mlir::Value value);
  mlir::Value reduce(mlir::Value value, ReduceKind kind, llvm::ArrayRef<int64_t> axes);
  /// The mean over `axes`, which are kept with extent 1.
  mlir::Value mean(mlir::Value value, llvm::ArrayRef<int64_t> axes);
  /// A vector of one element for each channel, shaped so that it broadcasts to [N, C, spatial...] of this rank.
  mlir::Value perChannel(mlir::Value vector, int64_t rank);

  // Dimensions whose extents depend on data. Extents of values that are made of such operands are found out behind the
  // import: see `Bounds::infer`.

  /// A number that extents are added to or subtracted from. `exact` is set if it may be below 0: the sum of this form,
  /// which is not divided.
  struct SignedExtent {
    Extent extent;
    std::optional<CountForm> exact = {};
  };
  /// The numbers that an integer value holds, each of which may follow from the count that bounds a dimension; nothing
  /// if that is not known. Runs in which what they follow from does not hold end with an error.
  std::optional<llvm::SmallVector<SignedExtent>> traceExtents(mlir::Value value);

  /// For each dimension the count that bounds it, or null; empty if none is bounded.
  llvm::ArrayRef<mlir::Value> getCounts(mlir::Value value) const { return context.bounds.get(value); }
  /// The extent of one dimension.
  Extent getExtent(mlir::Value value, unsigned dim) const { return {getShape(value)[dim], getCount(value, dim)}; }
  /// An extent as a scalar of i64.
  mlir::Value toScalar(const Extent &extent) {
    return extent.count ? extent.count : reshape(constantInts(extent.number), {});
  }
  /// The count that bounds one dimension; null if nothing does.
  mlir::Value getCount(mlir::Value value, unsigned dim) const {
    llvm::ArrayRef<mlir::Value> counts = getCounts(value);
    return counts.empty() ? mlir::Value() : counts[dim];
  }
  /// Says of each dimension of `value` what bounds it.
  mlir::Value bound(mlir::Value value, Counts counts);
  /// The same, also where that is nothing, whatever `value` is made of.
  mlir::Value state(mlir::Value value, Counts counts);
  /// Says that nothing bounds `value`, whatever it is made of.
  mlir::Value stateUnbounded(mlir::Value value);
  /// The count (`count` + `added`) / `divisor`, rounded down, or 0 if that is below 0.
  mlir::Value deriveCount(mlir::Value count, int64_t added, int64_t divisor);
  /// The count `count` * `factor` + `added`, or 0 if that is below 0.
  mlir::Value multiplyCount(mlir::Value count, int64_t factor, int64_t added);
  mlir::Value addCounts(mlir::Value a, mlir::Value b);
  /// The form whose sum the number is, also below 0.
  CountForm getExact(const SignedExtent &number) const;
  /// `a` - `b`, or 0 if that is below 0; nothing if it does not fit.
  std::optional<Extent> subtractExtents(const SignedExtent &a, const SignedExtent &b);
  /// A run in which `extent`, which is bounded, is below `least` ends with an error.
  void requireExtent(const Extent &extent, int64_t least) {
    requirements.emplace_back(CountForm::of(extent.count), least);
  }
  /// `extent` / `number`, rounded up.
  Extent divideExtent(const Extent &extent, int64_t number);
  Extent makeExtent(const CountForm &form);
  /// The count of the simplest form that `compute`, which may not fail for the count itself, makes of it.
  mlir::Value computeCount(mlir::Value count, llvm::function_ref<std::optional<CountForm>(const CountForm &)> compute);
  /// The count of that form, or the constant.
  mlir::Value makeCount(const CountForm &form);
  /// The value that `make` makes of a count and of `numbers`, the last of which is not 0: once.
  mlir::Value shareCount(mlir::Value count, std::array<int64_t, 3> numbers, llvm::function_ref<mlir::Value()> make);
  /// `value` with `count` as what bounds dimension `dim`, which must be equal in each run.
  mlir::Value agree(mlir::Value value, unsigned dim, mlir::Value count) {
    return context.bounds.agree(context.builder, context.loc, value, dim, count);
  }
  /// `value` with zeros in its tails: not bounded any more.
  mlir::Value clearTails(mlir::Value value);
  /// `value` with what changes nothing where elements are combined by `kind`, or with `filler`, in the tails of `axes`,
  /// which are not bounded any more. `value` may be what this import has built.
  mlir::Value fillTails(mlir::Value value, llvm::ArrayRef<int64_t> axes, ReduceKind kind);
  mlir::Value fillTails(mlir::Value value, llvm::ArrayRef<int64_t> axes, mlir::TypedAttr filler);
  mlir::Value fillTails(mlir::Value value, llvm::ArrayRef<int64_t> axes, mlir::Value filler);
  /// `value` with the last element along `dim` in its tail there, which is not bounded any more.
  mlir::Value repeatLast(mlir::Value value, int64_t dim);
  /// The coordinates of dimension `dim`, of this extent, in a tensor of `rank` dimensions; broadcasts to the tensor.
  mlir::Value countAlong(int64_t rank, int64_t dim, int64_t extent);
  /// `indices`, of any integer type, as i64 from the begin on: from `extent` where they are negative. Indices outside
  /// become `outside`. All broadcast.
  mlir::Value countFromBegin(mlir::Value indices, mlir::Value extent, mlir::Value outside);
  /// Gathers along a dimension that has a count: from its end where indices, of any integer type, are negative. The
  /// tail is outside of the tensor, too.
  mlir::Value gatherBounded(mlir::Value value, mlir::Value indices, int64_t axis);
  /// Finds what bounds a value that this import has built, which is else found out behind it. Reports `unsupported`.
  llvm::LogicalResult inferBounds(mlir::Value value);
  /// That `value`, as a subject `what`, has a dimension that depends on data, and why it must not.
  Obstacle describeBounded(const llvm::Twine &what, mlir::Value value, const llvm::Twine &why) const;

  // Errors.

  /// Reports that the model is invalid here.
  llvm::LogicalResult invalid(const llvm::Twine &message);
  /// Reports that the data of a constant input are needed, and in a file that is missing.
  llvm::LogicalResult missing(llvm::StringRef what);
  /// Notes that the node cannot be imported; the import goes on to find all such nodes, and fails at the end.
  llvm::LogicalResult unsupported(const llvm::Twine &reason, const llvm::Twine &remedy = "");
  llvm::LogicalResult unsupported(const Obstacle &obstacle) { return unsupported(obstacle.reason, obstacle.remedy); }
  /// The argument of `unsupported`, if it was called.
  const std::optional<Obstacle> &getObstacle() const { return obstacle; }

  /// That `what`, as a subject, must be known at compile time.
  static Obstacle describeNotConstant(const llvm::Twine &what);

protected:
  /// The types of operands, for messages; empty if there are none.
  virtual std::string describeOperands() const { return ""; }

  Context context;
  /// Of each operand of the node, the tensor, or null.
  llvm::SmallVector<mlir::Value> inputs;
  /// Sums, with what they are at least in runs that do not end with an error.
  llvm::SmallVector<std::pair<CountForm, int64_t>> requirements;

private:
  static bool isMissing(mlir::Value value) { return !value; }
  static bool isMissing(mlir::ValueRange values) {
    return llvm::any_of(values, [](mlir::Value value) { return !value; });
  }
  template <typename T> static bool isMissing(const T &) { return false; }
  static mlir::Value unwrap(OptionalOperand operand) { return operand.value; }
  template <typename T> static T &&unwrap(T &&value) { return std::forward<T>(value); }

  llvm::SmallPtrSet<mlir::Operation *, 16> visited; ///< By `inferBounds`.
  std::optional<Obstacle> obstacle;
};

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_BUILD_GRAPHBUILDER_H
