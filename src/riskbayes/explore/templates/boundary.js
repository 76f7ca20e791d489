// Where the most probable class changes, as segments in the units of the points.

const CELLS = [107, 80];

// How far class k is ahead of all others, in log joints.
function lead(theta, k, x, y) {
  const scores = logJoint(theta, x, y), own = scores[k];
  scores[k] = -Infinity;
  return own - Math.max(...scores);
}

// The zero of f between a (f < 0) and b (f >= 0): the Illinois method, to a small share of a cell.
function zeroBetween(f, a, b, fa, fb) {
  for (let i = 0; i < 12; i += 1) {
    const share = fa / (fa - fb), middle = [a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])];
    const value = f(middle);
    if (value === 0 || i === 11) return middle;
    if (value < 0) { [a, fa] = [middle, value]; fb /= 2; } else { [b, fb] = [middle, value]; fa /= 2; }
  }
  return a;
}

// The segments of f = 0 in the cell from `low` to `high`, whose corners have these values, counted round. Where a
// chord is not within half a pixel of the line (bends, saddles, where three classes meet), the cell is divided.
function segmentsIn(f, low, high, values, pixel, depth) {
  const corners = [low, [high[0], low[1]], high, [low[0], high[1]]], ends = [];
  values.forEach((a, e) => {
    const next = (e + 1) % 4, b = values[next];
    if (a < 0 && b >= 0) ends.push(zeroBetween(f, corners[e], corners[next], a, b));
    if (b < 0 && a >= 0) ends.push(zeroBetween(f, corners[next], corners[e], b, a));
  });
  if (!ends.length) return [];
  if (depth > 0 && (ends.length > 2 || !isNear(f, ends, pixel))) {
    const middle = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2];
    const xs = [low[0], middle[0], high[0]], ys = [low[1], middle[1], high[1]];
    return [0, 1].flatMap((i) => [0, 1].flatMap((j) => {
      const [a, b] = [[xs[i], ys[j]], [xs[i + 1], ys[j + 1]]];
      return segmentsIn(f, a, b, [f(a), f([b[0], a[1]]), f(b), f([a[0], b[1]])], pixel, depth - 1);
    }));
  }
  return ends.length === 2 ? [ends] : [ends.slice(0, 2), ends.slice(2)];
}

// Whether f changes its sign within half a pixel of the middle of a segment, across it.
function isNear(f, [a, b], pixel) {
  const along = [(b[0] - a[0]) / pixel[0], (b[1] - a[1]) / pixel[1]], length = Math.hypot(...along) || 1;
  const across = [-0.5 * pixel[0] * along[1] / length, 0.5 * pixel[1] * along[0] / length];
  const middle = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  const [p, q] = [1, -1].map((sign) => f([middle[0] + sign * across[0], middle[1] + sign * across[1]]));
  return (p < 0) !== (q < 0);
}

// Segments [[x, y], [x, y]] within `view` = [left, right, bottom, top], of a picture of `size` pixels.
function boundary(theta, view, origin, size) {
  const [left, right, bottom, top] = view, [nx, ny] = CELLS, found = [];
  const pixel = [(right - left) / size[0], (top - bottom) / size[1]];
  const at = (i, j) => [left + (right - left) * (i / nx), bottom + (top - bottom) * (j / ny)];
  const last = theta.means.length === 2 ? 1 : theta.means.length; // of two classes one line is enough
  for (let k = 0; k < last; k += 1) {
    const f = ([x, y]) => lead(theta, k, x - origin[0], y - origin[1]);
    const values = Array.from({ length: ny + 1 }, (_, j) => Array.from({ length: nx + 1 }, (__, i) => f(at(i, j))));
    for (let j = 0; j < ny; j += 1) {
      for (let i = 0; i < nx; i += 1) {
        const round = [values[j][i], values[j][i + 1], values[j + 1][i + 1], values[j + 1][i]];
        found.push(...segmentsIn(f, at(i, j), at(i + 1, j + 1), round, pixel, 3));
      }
    }
  }
  return found;
}
