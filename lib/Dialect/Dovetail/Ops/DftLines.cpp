//===- DftLines.cpp - Lines of Fourier transforms -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the row program of `dovetail.dft`, for one line or a vector of lines.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Definition/VectorSquare.h"
#include "dovetail/Dialect/Dovetail/Ops/FourierPlan.h"
#include "dovetail/Dialect/Dovetail/Ops/SpectralOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dovetail;

namespace {
/// A complex number, or a vector of those of several lines.
struct Complex {
  Value re, im;
};

/// The points of a transform.
class Points {
public:
  virtual ~Points() = default;
  virtual Value loadPart(Value position, unsigned part) = 0;
  virtual void storePart(Value position, unsigned part, Value value) = 0;
};

/// Those of one line, in the result.
class ResultPoints : public Points {
public:
  ResultPoints(DftOp op, LineBuilder &line) : op(op), line(line), isReal(op.getType().getShape().back() == 1) {}

  Value loadPart(Value position, unsigned part) override { return line.readBack(0, getIndex(position, part)); }
  void storePart(Value position, unsigned part, Value value) override {
    line.write(0, getIndex(position, part), value);
  }

private:
  SmallVector<Value> getIndex(Value position, unsigned part) {
    ElementBuilder &elements = line.elements;
    SmallVector<Value> index(line.getResultIndex());
    index[op.getAxis()] = isReal ? elements.addI(elements.mulI(position, 2), part) : position;
    index.back() = elements.index(isReal ? 0 : part);
    return index;
  }

  DftOp op;
  LineBuilder &line;
  bool isReal; ///< Of real results, each two are a point.
};

/// Those of several lines, in scratch memory.
class ScratchPoints : public Points {
public:
  ScratchPoints(LineBuilder &line, VectorType type, int64_t count)
      : line(line), type(type), scratch(line.getSink().createScratch(type, 2 * count)) {}

  Value loadPart(Value position, unsigned part) override {
    return line.getSink().loadScratch(scratch, type, getPosition(position, part));
  }
  void storePart(Value position, unsigned part, Value value) override {
    line.getSink().storeScratch(scratch, getPosition(position, part), value);
  }
  Value loadLane(Value position, unsigned part, Value lane) {
    return line.getSink().loadScratch(scratch, type.getElementType(), getLane(position, part, lane));
  }
  void storeLane(Value position, unsigned part, Value lane, Value value) {
    line.getSink().storeScratch(scratch, getLane(position, part, lane), value);
  }

private:
  Value getPosition(Value position, unsigned part) { return line.elements.addI(line.elements.mulI(position, 2), part); }
  Value getLane(Value position, unsigned part, Value lane) {
    return line.elements.addI(line.elements.mulI(getPosition(position, part), type.getDimSize(0)), lane);
  }

  LineBuilder &line;
  VectorType type;
  Value scratch;
};

/// Emits the transform of a line, or of lines that are gone through together.
class Transform {
public:
  Transform(DftOp op, LineBuilder &line)
      : op(op), line(line), elements(line.elements), plan(*FourierPlan::create(op.getLength(), op.getOnesided())),
        scalar(op.getType().getElementType()), type(scalar) {}

  void emit();

private:
  /// Has lines along `loop` gone through together, as many as a vector has elements.
  void emitLanes(unsigned loop);
  /// Reads the inputs of lines from `first` on into `points`, or writes what is there to the result: of as many lines
  /// as a vector has elements. Where neighbours in memory are of one line, squares are transposed in registers.
  void readLines(unsigned loop, Value first, ScratchPoints &points);
  void writeLines(unsigned loop, Value first, ScratchPoints &points);
  /// The same of fewer lines, those before `end`.
  void readLastLines(unsigned loop, Value first, Value end, ScratchPoints &points);
  void writeLastLines(unsigned loop, Value first, Value end, ScratchPoints &points);
  /// A point of each of these lines; those that are read are at most `last`, where that is given.
  void readPoint(unsigned loop, Value first, Value last, Value number, Value position, ScratchPoints &points);
  void writePoint(unsigned loop, Value first, Value numLines, Value number, ScratchPoints &points);
  /// Where the first step has input number `number`.
  Value findPosition(Value number);
  /// Whether points of a line are neighbours in memory, in which dimensions mostly lie in order, rather than lines are.
  bool hasNeighbours(unsigned loop) { return op.getAxis() > loop; }
  /// Whether a point is made of one number that is read, and not of two.
  bool readsReal() { return !op.getOnesided() && op.readsReal(); }
  bool writesReal() { return op.writesReal(); }
  /// Whether the result is divided by the length.
  bool isScaled() { return op.getInverse() && !op.getUnscaled(); }
  /// Points of the result.
  int64_t countResults() { return writesReal() ? plan.getNumPoints() : op.getType().getDimSize(op.getAxis()); }

  /// Goes through the points of the line at hand, in their order, with the positions at which the first step has them.
  void forEachInput(function_ref<void(Value number, Value position)> body, unsigned step = 0, Value number = {},
                    Value position = {});
  /// The parts of input number `number` of the first step; `root` is that of the number, where spectra are onesided.
  Complex readInput(Value number, Complex root);
  /// The root that `readInput` needs.
  Complex readRootOf(Value number);
  Complex readRoot(Value number);

  void emitSteps(Points &points);
  void emitStep(Points &points, const FourierPlan::Step &step, bool isLast);
  /// Makes the spectrum of real numbers of that of the complex numbers that each two of them are.
  void separate(Points &points);

  // The steps go forward. Inverse ones are those of numbers with their parts exchanged.
  Complex load(Points &points, Value position) {
    bool swaps = op.getInverse();
    return {points.loadPart(position, swaps), points.loadPart(position, !swaps)};
  }
  void store(Points &points, Value position, Complex value) {
    bool swaps = op.getInverse();
    points.storePart(position, swaps, value.re);
    points.storePart(position, !swaps, value.im);
  }

  // Arithmetic of `type`.
  Value constant(double value);
  Complex add(Complex a, Complex b) { return {elements.add(a.re, b.re), elements.add(a.im, b.im)}; }
  Complex sub(Complex a, Complex b) { return {elements.sub(a.re, b.re), elements.sub(a.im, b.im)}; }
  Complex scale(Complex a, Value factor) { return {elements.mul(a.re, factor), elements.mul(a.im, factor)}; }
  Complex mul(Complex a, Complex b) {
    return {elements.sub(elements.mul(a.re, b.re), elements.mul(a.im, b.im)),
            elements.add(elements.mul(a.re, b.im), elements.mul(a.im, b.re))};
  }
  /// The transform of few points.
  SmallVector<Complex> transform(ArrayRef<Complex> x);

  DftOp op;
  LineBuilder &line;
  ElementBuilder &elements;
  FourierPlan plan;
  Type scalar, type;
};
} // namespace

Value Transform::constant(double value) {
  if (type == scalar)
    return elements.constant(scalar, value);
  auto attribute = DenseElementsAttr::get(cast<VectorType>(type), FloatAttr::get(scalar, value));
  return arith::ConstantOp::create(elements.getBuilder(), elements.getLoc(), attribute);
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

void Transform::forEachInput(function_ref<void(Value, Value)> body, unsigned step, Value number, Value position) {
  if (!number)
    number = position = elements.index(0);
  if (step == plan.getSteps().size())
    return body(number, position);
  // Step by step, inputs are those that leave the same remainder.
  auto [factor, size, roots] = plan.getSteps()[step];
  int64_t distance = plan.getNumPoints() / (size * factor);
  elements.forEach(elements.index(0), elements.index(factor), [&, size = size](Value iv) {
    forEachInput(body, step + 1, elements.addI(number, elements.mulI(iv, distance)),
                 elements.addI(position, elements.mulI(iv, size)));
  });
}

Complex Transform::readRoot(Value number) {
  Value position = elements.mulI(number, 2);
  return {line.read(1, position), line.read(1, elements.addI(position, 1))};
}

Complex Transform::readRootOf(Value number) {
  if (!op.getOnesided() || !op.getInverse())
    return {};
  return readRoot(elements.addI(number, plan.getRealRoots()));
}

Complex Transform::readInput(Value number, Complex root) {
  auto read = [&](Value position, int64_t part) { return line.read(0, {position, elements.index(part)}); };
  if (!op.getOnesided()) {
    return {read(number, 0), readsReal() ? elements.zero(scalar) : read(number, 1)};
  }
  if (!op.getInverse()) {
    Value first = elements.mulI(number, 2);
    return {read(first, 0), read(elements.addI(first, 1), 0)};
  }
  // Of the spectra of elements at even and at odd places, E and O, that of all is E[k] + w^k O[k], and, n / 2 - k being
  // the place of the mirror image, (E[k] - w^k O[k])* there. What is transformed is E + i O.
  Value mirrored = elements.subI(elements.index(plan.getNumPoints()), number);
  Value isFirst = elements.compareI(arith::CmpIPredicate::eq, number, elements.index(0));
  auto readImaginary = [&](Value position) {
    return elements.select(isFirst, elements.zero(scalar), read(position, 1));
  };
  Complex a = {read(number, 0), readImaginary(number)}, b = {read(mirrored, 0), readImaginary(mirrored)};
  Complex even = {elements.add(a.re, b.re), elements.sub(a.im, b.im)};
  Complex odd = {elements.sub(a.re, b.re), elements.add(a.im, b.im)};
  odd = {elements.add(elements.mul(odd.re, root.re), elements.mul(odd.im, root.im)),
         elements.sub(elements.mul(odd.im, root.re), elements.mul(odd.re, root.im))};
  Complex point = {elements.sub(even.re, odd.im), elements.add(even.im, odd.re)};
  return isScaled() ? scale(point, elements.constant(scalar, 1.0 / static_cast<double>(op.getLength()))) : point;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

SmallVector<Complex> Transform::transform(ArrayRef<Complex> x) {
  if (x.size() == 2)
    return {add(x[0], x[1]), sub(x[0], x[1])};
  if (x.size() == 4) {
    Complex a = add(x[0], x[2]), b = sub(x[0], x[2]), c = add(x[1], x[3]), d = sub(x[1], x[3]);
    // A quarter turn back, -i d, is (d.im, -d.re).
    return {add(a, c),
            {elements.add(b.re, d.im), elements.sub(b.im, d.re)},
            sub(a, c),
            {elements.sub(b.re, d.im), elements.add(b.im, d.re)}};
  }
  // Odd numbers of points: those of j and -j have the same cosine, and sines of different signs.
  int64_t count = x.size(), half = (count - 1) / 2;
  SmallVector<Complex> sums, differences, y(count);
  y[0] = x[0];
  for (int64_t j = 1; j <= half; ++j) {
    sums.push_back(add(x[j], x[count - j]));
    differences.push_back(sub(x[j], x[count - j]));
    y[0] = add(y[0], sums.back());
  }
  for (int64_t k = 1; k <= half; ++k) {
    Complex even = x[0], odd;
    for (int64_t j = 1; j <= half; ++j) {
      std::complex<double> root = getRootOfOne(j * k, count);
      even = add(even, scale(sums[j - 1], constant(root.real())));
      Complex term = scale(differences[j - 1], constant(-root.imag()));
      odd = j == 1 ? term : add(odd, term);
    }
    y[k] = {elements.add(even.re, odd.im), elements.sub(even.im, odd.re)};
    y[count - k] = {elements.sub(even.re, odd.im), elements.add(even.im, odd.re)};
  }
  return y;
}

void Transform::emitStep(Points &points, const FourierPlan::Step &step, bool isLast) {
  int64_t factor = step.factor, size = step.size;
  auto broadcast = [&](Value value) {
    return type == scalar ? value : elements.create<vector::BroadcastOp>(type, value);
  };
  Value zero = elements.index(0), numPieces = elements.index(plan.getNumPoints() / (size * factor));
  elements.forEach(zero, numPieces, [&](Value piece) {
    Value first = elements.mulI(piece, size * factor);
    auto emitPoint = [&](Value point) {
      Value start = elements.addI(first, point);
      SmallVector<Complex> x;
      for (int64_t t = 0; t < factor; ++t) {
        x.push_back(load(points, elements.addI(start, t * size)));
        if (t == 0 || size == 1)
          continue;
        Complex root = readRoot(elements.addI(elements.mulI(point, factor - 1), step.roots + t - 1));
        x.back() = mul(x.back(), {broadcast(root.re), broadcast(root.im)});
      }
      SmallVector<Complex> transformed = transform(x);
      for (int64_t t = 0; t < factor; ++t) {
        Complex y = transformed[t];
        if (isLast && isScaled() && !op.getOnesided())
          y = scale(y, constant(1.0 / static_cast<double>(op.getLength())));
        store(points, elements.addI(start, t * size), y);
      }
    };
    elements.forEach(zero, elements.index(size), emitPoint, /*maxUnroll=*/1);
  });
}

void Transform::separate(Points &points) {
  // As in `readInput`, the other way round.
  int64_t count = plan.getNumPoints();
  Value zero = elements.index(0), last = elements.index(count), one = constant(0.5);
  Complex first = load(points, zero);
  store(points, zero, {elements.add(first.re, first.im), constant(0)});
  store(points, last, {elements.sub(first.re, first.im), constant(0)});
  elements.forEach(elements.index(1), elements.index(count / 2 + 1), [&](Value number) {
    Value mirrored = elements.subI(last, number);
    Complex a = load(points, number), b = load(points, mirrored),
            root = readRoot(elements.addI(number, plan.getRealRoots()));
    if (type != scalar)
      root = {elements.create<vector::BroadcastOp>(type, root.re), elements.create<vector::BroadcastOp>(type, root.im)};
    Complex even = {elements.mul(elements.add(a.re, b.re), one), elements.mul(elements.sub(a.im, b.im), one)};
    Complex odd = {elements.mul(elements.add(a.im, b.im), one), elements.mul(elements.sub(b.re, a.re), one)};
    odd = mul(odd, root);
    Complex difference = sub(even, odd);
    store(points, number, add(even, odd));
    store(points, mirrored, {difference.re, elements.create<arith::NegFOp>(difference.im)});
  });
}

void Transform::emitSteps(Points &points) {
  for (const FourierPlan::Step &step : plan.getSteps())
    emitStep(points, step, &step == &plan.getSteps().back());
  if (op.getOnesided() && !op.getInverse())
    separate(points);
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

Value Transform::findPosition(Value number) {
  Value position = elements.index(0);
  for (auto [factor, size, roots] : plan.getSteps()) {
    Value digit = elements.create<arith::DivUIOp>(number, elements.index(plan.getNumPoints() / (size * factor)));
    digit = elements.create<arith::RemUIOp>(digit, elements.index(factor));
    position = elements.addI(position, elements.mulI(digit, size));
  }
  return position;
}

void Transform::readLines(unsigned loop, Value first, ScratchPoints &points) {
  int64_t lanes = cast<VectorType>(type).getDimSize(0), numPoints = plan.getNumPoints();
  int64_t parts = readsReal() ? 1 : 2, block = lanes / parts;
  // Inverse onesided ones combine what is at two places of a line.
  bool readsBlocks = hasNeighbours(loop) && !(op.getOnesided() && op.getInverse());
  int64_t numBlocks = readsBlocks ? numPoints / block : 0;
  elements.forEach(elements.index(0), elements.index(numBlocks), [&](Value iv) {
    Value number = elements.mulI(iv, block);
    SmallVector<Value> rows;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      line.setLoop(loop, elements.addI(first, lane));
      SmallVector<Value> row;
      for (int64_t i = 0; i < block; ++i) {
        Complex input = readInput(elements.addI(number, i), {});
        row.push_back(input.re);
        if (parts == 2)
          row.push_back(input.im);
      }
      rows.push_back(elements.create<vector::FromElementsOp>(type, row));
    }
    rows = transposeSquare(elements.getBuilder(), elements.getLoc(), rows);
    for (int64_t i = 0; i < block; ++i) {
      Value position = findPosition(elements.addI(number, i));
      points.storePart(position, 0, rows[i * parts]);
      points.storePart(position, 1, parts == 2 ? rows[i * parts + 1] : constant(0));
    }
  });
  elements.forEach(elements.index(numBlocks * block), elements.index(numPoints),
                   [&](Value number) { readPoint(loop, first, /*last=*/{}, number, findPosition(number), points); });
}

void Transform::readLastLines(unsigned loop, Value first, Value end, ScratchPoints &points) {
  // Fewer than a vector has: one is there several times.
  Value last = elements.addI(end, -1);
  forEachInput([&](Value number, Value position) { readPoint(loop, first, last, number, position, points); });
}

void Transform::readPoint(unsigned loop, Value first, Value last, Value number, Value position, ScratchPoints &points) {
  Complex root = readRootOf(number);
  elements.forEach(elements.index(0), elements.index(cast<VectorType>(type).getDimSize(0)), [&](Value lane) {
    Value coordinate = elements.addI(first, lane);
    line.setLoop(loop, last ? elements.minI(coordinate, last) : coordinate);
    Complex input = readInput(number, root);
    points.storeLane(position, 0, lane, input.re);
    points.storeLane(position, 1, lane, input.im);
  });
}

void Transform::writePoint(unsigned loop, Value first, Value numLines, Value number, ScratchPoints &points) {
  elements.forEach(elements.index(0), numLines, [&](Value lane) {
    line.setLoop(loop, elements.addI(first, lane));
    ResultPoints result(op, line);
    for (unsigned part : {0, 1})
      result.storePart(number, part, points.loadLane(number, part, lane));
  });
}

void Transform::writeLines(unsigned loop, Value first, ScratchPoints &points) {
  int64_t lanes = cast<VectorType>(type).getDimSize(0), block = lanes / 2;
  int64_t numBlocks = hasNeighbours(loop) ? countResults() / block : 0;
  elements.forEach(elements.index(0), elements.index(numBlocks), [&](Value iv) {
    Value number = elements.mulI(iv, block);
    SmallVector<Value> rows;
    for (int64_t i = 0; i < lanes; ++i)
      rows.push_back(points.loadPart(elements.addI(number, i / 2), i % 2));
    rows = transposeSquare(elements.getBuilder(), elements.getLoc(), rows);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      line.setLoop(loop, elements.addI(first, lane));
      ResultPoints result(op, line);
      for (int64_t i = 0; i < lanes; ++i)
        result.storePart(elements.addI(number, i / 2), i % 2,
                         elements.create<vector::ExtractOp>(rows[lane], ArrayRef<int64_t>{i}));
    }
  });
  elements.forEach(elements.index(numBlocks * block), elements.index(countResults()),
                   [&](Value number) { writePoint(loop, first, elements.index(lanes), number, points); });
}

void Transform::writeLastLines(unsigned loop, Value first, Value end, ScratchPoints &points) {
  elements.forEach(elements.index(0), elements.index(countResults()),
                   [&](Value number) { writePoint(loop, first, elements.subI(end, first), number, points); });
}

void Transform::emitLanes(unsigned loop) {
  int64_t lanes = countJoinedLines(scalar);
  type = VectorType::get(lanes, scalar);
  ScratchPoints points(line, cast<VectorType>(type), plan.getNumPoints() + 1);
  auto [begin, end] = line.getRange(loop);
  Value tiles = elements.floorDivI(elements.addI(elements.subI(end, begin), lanes - 1), lanes);
  elements.forEach(elements.index(0), tiles, [&, begin = begin, end = end](Value tile) {
    Value first = elements.addI(begin, elements.mulI(tile, lanes));
    Value isFull = elements.compareI(arith::CmpIPredicate::sle, elements.addI(first, lanes), end);
    auto emitEither = [&](function_ref<void()> full, function_ref<void()> last) {
      auto run = [](function_ref<void()> body) {
        return [body]() -> SmallVector<Value> {
          body();
          return {};
        };
      };
      elements.ifElse(isFull, TypeRange(), run(full), run(last));
    };
    emitEither([&] { readLines(loop, first, points); }, [&] { readLastLines(loop, first, end, points); });
    emitSteps(points);
    emitEither([&] { writeLines(loop, first, points); }, [&] { writeLastLines(loop, first, end, points); });
  });
}

void Transform::emit() {
  ArrayRef<unsigned> inner = line.getInnerLoops();
  if (!inner.empty())
    return emitLanes(inner.front());
  ResultPoints points(op, line);
  forEachInput([&](Value number, Value position) {
    Complex input = readInput(number, readRootOf(number));
    points.storePart(position, 0, input.re);
    points.storePart(position, 1, input.im);
  });
  emitSteps(points);
}

void DftOp::emitLine(LineBuilder &line) { Transform(*this, line).emit(); }
