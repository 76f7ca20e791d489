/**
 * Return a model of riskbayes from its JSON: the columns of a table, and a graph of the operators below.
 *
 * A tensor is {shape, data}: an array of numbers (1 and 0 for true and false) or of strings, by rows.
 */
function createModel(value) {
  const total = (shape) => shape.reduce((product, n) => product * n, 1);
  const array = (n) => new Float64Array(n);

  /** How far apart neighbours along each axis are, zero where a tensor is repeated to fill the shape. */
  function strides(from, shape) {
    const found = new Array(shape.length).fill(0);
    let step = 1;
    for (let axis = shape.length - 1, own = from.length - 1; own >= 0; axis--, own--) {
      found[axis] = from[own] === 1 ? 0 : step;
      step *= from[own];
    }
    return found;
  }

  /** The shape of tensors that are repeated along axes of length one. */
  function common(shapes) {
    const rank = Math.max(...shapes.map((shape) => shape.length));
    return Array.from({ length: rank }, (_, axis) => shapes.reduce((length, shape) => {
      const own = shape[axis - rank + shape.length] ?? 1;
      return length === 1 ? own : length;
    }, 1));
  }

  /** Call visit(places) for all places of a shape in turn, with the place in each of some tensors. */
  function walk(shape, steps, visit) {
    const index = new Array(shape.length).fill(0), places = new Array(steps.length).fill(0);
    for (let left = total(shape); left > 0; left--) {
      visit(places);
      for (let axis = shape.length - 1; axis >= 0; axis--) {
        index[axis]++;
        for (let t = 0; t < steps.length; t++) places[t] += steps[t][axis];
        if (index[axis] < shape[axis]) break;
        for (let t = 0; t < steps.length; t++) places[t] -= steps[t][axis] * shape[axis];
        index[axis] = 0;
      }
    }
  }

  /** An operator that computes each element of those of up to three inputs, along the last axis in a loop. */
  const each = (formula) => (inputs) => {
    const shape = common(inputs.map((x) => x.shape)), data = array(total(shape));
    const steps = inputs.map((x) => strides(x.shape, shape)), width = shape[shape.length - 1];
    const [a, b = a, c = a] = inputs.map((x) => x.data);
    const [i, j = 0, k = 0] = steps.map((own) => own[own.length - 1]);
    let at = 0;
    walk(shape.slice(0, -1), steps, ([p, q = 0, r = 0]) => {
      for (let l = 0; l < width; l++, p += i, q += j, r += k) data[at++] = formula(a[p], b[q], c[r]);
    });
    return { shape, data };
  };

  /** A tensor as [before the axis, along it, after it]. */
  const around = (shape, axis) => [total(shape.slice(0, axis)), shape[axis], total(shape.slice(axis + 1))];

  /** An operator that reduces one or several axes. */
  const reduce = (formula, first) => ([x, axes], { keepdims }) => {
    let { shape, data } = x;
    for (const axis of axes.data) {
      const [before, length, after] = around(shape, axis), found = array(before * after).fill(first);
      for (let i = 0, at = 0; i < before; i++)
        for (let j = 0; j < length; j++)
          for (let k = 0; k < after; k++, at++)
            found[i * after + k] = formula(found[i * after + k], data[at]);
      data = found;
      shape = shape.map((n, i) => (i === axis ? 1 : n));
    }
    return { shape: keepdims ? shape : shape.filter((_, axis) => !axes.data.includes(axis)), data };
  };

  const operators = {
    Add: each((a, b) => a + b),
    Sub: each((a, b) => a - b),
    Mul: each((a, b) => a * b),
    Div: each((a, b) => a / b),
    Equal: each((a, b) => (a === b ? 1 : 0)),
    Greater: each((a, b) => (a > b ? 1 : 0)),
    GreaterOrEqual: each((a, b) => (a >= b ? 1 : 0)),
    IsNaN: each((a) => (Number.isNaN(a) ? 1 : 0)),
    Relu: each((a) => Math.max(a, 0)),
    Exp: each((a) => Math.exp(a)),
    Log: each((a) => Math.log(a)),
    Sqrt: each((a) => Math.sqrt(a)),
    Where: each((mask, a, b) => (mask ? a : b)),
    Cast: ([x], { to }) => (to === "int64" ? { shape: x.shape, data: x.data.map(Math.trunc) } : x),
    ReduceSum: reduce((a, b) => a + b, 0),
    ReduceMax: reduce((a, b) => Math.max(a, b), -Infinity),
    Reshape: ([x, shape]) => ({ shape: [...shape.data].map((n, axis) => n || x.shape[axis]), data: x.data }),

    Unsqueeze([x, axes]) {
      const shape = [...x.shape];
      for (const axis of axes.data) shape.splice(axis, 0, 1);
      return { shape, data: x.data };
    },

    Concat(parts, { axis }) {
      const shape = parts[0].shape.map((n, i) => (i === axis ? parts.reduce((sum, x) => sum + x.shape[i], 0) : n));
      const [before] = around(shape, axis), data = array(total(shape));
      for (let i = 0, at = 0; i < before; i++)
        for (const x of parts) {
          const length = x.data.length / before;
          for (let j = 0; j < length; j++) data[at++] = x.data[i * length + j];
        }
      return { shape, data };
    },

    Gather([x, indices], { axis }) {
      const [before, length, after] = around(x.shape, axis);
      const shape = [...x.shape.slice(0, axis), ...indices.shape, ...x.shape.slice(axis + 1)];
      const data = typeof x.data[0] === "string" ? new Array(total(shape)) : array(total(shape));
      for (let i = 0, at = 0; i < before; i++)
        for (const j of indices.data)
          for (let k = 0; k < after; k++) data[at++] = x.data[(i * length + j) * after + k];
      return { shape, data };
    },

    GatherElements([x, indices]) {
      const [, width] = x.shape, [, own] = indices.shape;
      const data = array(indices.data.length);
      indices.data.forEach((j, at) => { data[at] = x.data[Math.floor(at / own) * width + j]; });
      return { shape: indices.shape, data };
    },

    MatMul([a, b]) {
      const [n, k] = a.shape.slice(-2), p = b.shape[b.shape.length - 1];
      const stacks = [a, b].map((x) => x.shape.slice(0, -2)), stack = common(stacks);
      const data = array(total(stack) * n * p);
      let start = 0;
      walk(stack, stacks.map((own) => strides(own, stack)), ([of_a, of_b]) => {
        for (let i = 0; i < n; i++)
          for (let l = 0; l < k; l++) {
            const factor = a.data[(of_a * n + i) * k + l], row = (of_b * k + l) * p;
            for (let j = 0; j < p; j++) data[start + i * p + j] += factor * b.data[row + j];
          }
        start += n * p;
      });
      return { shape: [...stack, n, p], data };
    },

    Softmax([x]) {
      const width = x.shape[x.shape.length - 1], data = array(x.data.length);
      for (let start = 0; start < data.length; start += width) {
        const own = x.data.subarray(start, start + width), top = Math.max(...own);
        const powers = own.map((score) => Math.exp(score - top)), sum = powers.reduce((a, b) => a + b, 0);
        powers.forEach((power, i) => { data[start + i] = power / sum; });
      }
      return { shape: x.shape, data };
    },

    TopK([x, number]) { // the indices of the smallest values, the smallest first
      const [rows, width] = x.shape, k = number.data[0], data = array(rows * k);
      for (let i = 0; i < rows; i++) {
        const own = x.data.subarray(i * width, (i + 1) * width);
        const order = Array.from(own.keys()).sort((a, b) => own[a] - own[b] || a - b);
        data.set(order.slice(0, k), i * k);
      }
      return { shape: [rows, k], data };
    },
  };

  /** Constants are read once; JSON has no infinity and no NaN, which are strings there. */
  const isWords = ({ dtype }) => dtype === "string";
  const constants = Object.entries(value.graph.constants).map(([name, own]) => [
    name, { shape: own.shape, data: isWords(own) ? own.data : Float64Array.from(own.data, Number) },
  ]);

  const isMissing = (cell) => cell === null || cell === undefined || cell === "" || Number.isNaN(cell);
  const shown = (cell) => (typeof cell === "string" ? JSON.stringify(cell) : String(cell));

  function refuse(column, cell, wanted) {
    throw new TypeError(`Column ${shown(column.name)} holds ${shown(cell)}, and the model reads ${wanted} there. `
      + "Convert it, or give null for a missing cell.");
  }

  function asNumber(column, cell) {
    if (isMissing(cell)) return NaN;
    if (typeof cell === "boolean") return Number(cell);
    if (typeof cell === "number" && Number.isFinite(cell)) return cell;
    const flags = typeof column.categories?.[0] === "boolean";
    return refuse(column, cell, flags ? "false or true" : "a finite number");
  }

  function asWord(column, cell) {
    if (isMissing(cell)) return "";
    if (typeof cell !== "string") refuse(column, cell, "a string");
    return cell.normalize("NFC");
  }

  const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d)(?::(\d\d)(?::(\d\d)(\.\d+)?)?)?)?$/;
  const DAY = 864e8; // microseconds

  /** Microseconds since 1970 of a Date, or of a string in ISO format, which is read as UTC. */
  function asTime(column, cell) {
    if (isMissing(cell)) return NaN;
    if (cell instanceof Date && !Number.isNaN(cell.getTime())) return cell.getTime() * 1000;
    const found = typeof cell === "string" ? ISO.exec(cell) : null;
    if (!found) refuse(column, cell, "a Date, or a date in ISO format,");
    const [year, month, day, hour, minute, second] = found.slice(1, 7).map((part) => Number(part ?? 0));
    const date = new Date(0);
    date.setUTCFullYear(year, month - 1, day);
    date.setUTCHours(hour, minute, second);
    const whole = hour < 24 && minute < 60 && second < 60;
    if (!whole || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day)
      refuse(column, cell, "a Date, or a date in ISO format,");
    return date.getTime() * 1000 + Math.floor(Number(found[7] ?? 0) * 1e6 + 1e-6);
  }

  const remainder = (a, b) => a - b * Math.floor(a / b);
  const parts = {
    days: (time) => time / DAY,
    weekday: (time) => remainder(Math.floor(time / DAY) + 3, 7), // 1970 began on a Thursday; Monday is 0
    month: (time) => (Number.isNaN(time) ? NaN : new Date(Math.floor(time / 1000)).getUTCMonth()),
    hour: (time) => Math.floor(remainder(time, DAY) / (DAY / 24)),
  };

  function read(column, kind, cell) {
    if (kind === "words") return asWord(column, cell);
    return kind === "number" ? asNumber(column, cell) : parts[kind](asTime(column, cell));
  }

  /** The inputs of the graph from a row: an object by the names of columns, or an array of all cells. */
  function inputsOf(row) {
    if (row === null || typeof row !== "object")
      throw new TypeError("A row is an object with a cell for each column, or an array of cells.");
    if (Array.isArray(row) && row.length !== value.columns.length)
      throw new RangeError(`The row has ${row.length} cells, and the model reads ${value.columns.length} columns.`);
    const inputs = new Map(value.graph.inputs.map((own) => [
      own.name, { shape: [1, own.width], data: isWords(own) ? [""] : array(own.width) },
    ]));
    value.columns.forEach((column, j) => {
      for (const { input, place, kind } of column.reads) {
        if (!Array.isArray(row) && !Object.hasOwn(row, column.name))
          throw new RangeError(`The row has no column ${shown(column.name)}. Give null for a missing cell.`);
        inputs.get(input).data[place] = read(column, kind, Array.isArray(row) ? row[j] : row[column.name]);
      }
    });
    return inputs;
  }

  /** The operations that an output needs, in their order. */
  function needed(output) {
    const used = new Set([output]);
    return [...value.graph.nodes].reverse().filter(([, inputs, name]) => {
      if (used.has(name)) inputs.forEach((input) => used.add(input));
      return used.has(name);
    }).reverse();
  }

  const nodes = Object.fromEntries(Object.entries(value.graph.outputs).map(([name, own]) => [name, needed(own)]));

  /** The value of an output of the graph for a row. */
  function run(row, output) {
    const known = new Map([...constants, ...inputsOf(row)]);
    for (const [operator, inputs, name, attributes] of nodes[output])
      known.set(name, operators[operator](inputs.map((input) => known.get(input)), attributes));
    return known.get(value.graph.outputs[output]).data;
  }

  const byClass = (numbers) => Object.fromEntries(value.classes.map((label, k) => [label, numbers[k]]));

  /** Return the probability of each class, by its label. */
  function predict(row) {
    const found = run(row, "probabilities");
    if (!found.every(Number.isFinite))
      throw new RangeError("The row is too far from the rows of the fit for finite probabilities.");
    return byClass(found);
  }

  /**
   * Return {prior, columns}: what the prior adds to the log joint of each class, by its label, and a list of
   * {name, values} of what each column and each pair of columns add. The mean over the classes is zero; the
   * difference of two classes is what a column adds to their log-odds.
   */
  function contributions(row) {
    if (!value.contributions)
      throw new Error(`${value.estimator} is no sum over the columns: they have no contributions.`);
    const found = run(row, "contributions"), r = value.classes.length;
    const values = (j) => byClass(found.subarray(j * r, (j + 1) * r));
    return {
      prior: byClass(value.contributions.prior.map(Number)),
      columns: value.contributions.columns.map((name, j) => ({ name, values: values(j) })),
    };
  }

  const { classes, columns } = value;
  return Object.freeze({ classes, columns, predict, contributions });
}
