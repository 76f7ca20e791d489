// The formulas of riskbayes for rows of two columns x and y; tests hold them to the library's.
// S is a list of statistics for each class. Second moments that all classes share (LDA) never move, since the
// rows of a residual sum to zero: they are in the frame.

const sum = (values) => values.reduce((a, b) => a + b, 0);
const LOG_2PI = Math.log(2 * Math.PI);
const FLOOR = 0.01; // least variance during calibration, as a share of the closed form's
const DEGENERATE = 1e-6; // least share of a variance that the points must determine

const FULL = (x, y) => [1, x, y, x * x, x * y, y * y];
const MODELS = {
  gnb: {
    name: "Gaussian naive Bayes",
    psi: (x, y) => [1, x, y, x * x, y * y],
    labels: ["weight", "Σ x", "Σ y", "Σ x²", "Σ y²"],
    second: (s) => [s[3], 0, s[4]],
    smoothing: 1e-9,
  },
  lda: {
    name: "LDA (one covariance)",
    psi: (x, y) => [1, x, y],
    labels: ["weight", "Σ x", "Σ y"],
    tied: true,
  },
  qda: {
    name: "QDA (a covariance a class)",
    psi: FULL,
    labels: ["weight", "Σ x", "Σ y", "Σ x²", "Σ x y", "Σ y²"],
    second: (s) => s.slice(3),
  },
  toy: {
    name: "unit variances (the paper’s toy)",
    psi: (x, y) => [1, x, y],
    labels: ["weight", "Σ x", "Σ y"],
    fixed: true,
  },
};

// Sum over the rows of W[i][k] psi(x_i): any weights, so that labels, posteriors and residuals have statistics.
function statistics(fit, W) {
  const { psi } = MODELS[fit.model];
  const S = Array.from({ length: fit.r }, () => psi(0, 0).fill(0));
  fit.rows.forEach(([x, y], i) => {
    const values = psi(x, y);
    W[i].forEach((w, k) => values.forEach((value, j) => { S[k][j] += w * value; }));
  });
  return S;
}

const combine = (...terms) => terms[0][1].map((own, k) =>
  own.map((_, j) => sum(terms.map(([factor, S]) => factor * S[k][j]))));

const isLegal = (S) => S.every((s) => s[0] > 0 && s.every(Number.isFinite));

// Covariances are [xx, xy, yy]. The closed form: moments less the square of the mean, before any floor.
function covariances(fit, S, means) {
  const model = MODELS[fit.model], total = sum(S.map((s) => s[0]));
  const outer = ([x, y]) => [x * x, x * y, y * y];
  if (model.fixed) return means.map(() => [1, 0, 1]);
  if (model.tied) {
    const squares = means.map(outer);
    const C = fit.tied.map((value, j) => (value - sum(S.map((s, k) => s[0] * squares[k][j]))) / total);
    return means.map(() => C);
  }
  return S.map((s, k) => {
    const [xx, xy, yy] = outer(means[k]), [a, b, c] = model.second(s).map((value) => value / s[0]);
    const more = model.smoothing ? model.smoothing * fit.widest : 0;
    return fit.model === "gnb" ? [a - xx + more, 0, c - yy + more] : [a - xx, b - xy, c - yy];
  });
}

// mean = s1 / s0, the covariances with their floor, and p(class).
function parameters(fit, S) {
  const masses = S.map((s) => s[0]), total = sum(masses);
  const means = S.map((s) => [s[1] / s[0], s[2] / s[0]]);
  const raw = covariances(fit, S, means);
  const lifted = fit.reference ? raw.map((C, k) => floorCovariance(fit, C, fit.reference[k])) : raw;
  const prior = MODELS[fit.model].fixed ? masses.map(() => 1 / fit.r) : masses.map((mass) => mass / total);
  return {
    prior,
    means,
    covariances: lifted,
    factors: lifted.map(cholesky),
    floored: lifted.filter((C, k) => C !== raw[k]).length,
    constants: prior.map((p, k) => {
      const [a, , c] = cholesky(lifted[k]);
      return Math.log(p) - LOG_2PI - Math.log(a * c);
    }),
  };
}

// L = [a, 0; b, c] as [a, b, c], with C = L L'.
function cholesky([xx, xy, yy]) {
  const a = Math.sqrt(xx), b = xy / a;
  return [a, b, Math.sqrt(yy - b * b)];
}

// The covariance whose variance is at least FLOOR times the closed form's in every direction; C itself if it is.
function floorCovariance(fit, C, reference) {
  if (fit.model === "gnb") {
    const low = [FLOOR * reference[0], 0, FLOOR * reference[2]];
    return C[0] < low[0] || C[2] < low[2] ? [Math.max(C[0], low[0]), 0, Math.max(C[2], low[2])] : C;
  }
  const [a, b, c] = cholesky(reference);
  // M = L^-1 C L^-T, whose eigenvalues are the shares.
  const m = C[0] / (a * a), n = (C[1] / a - m * b) / c;
  const o = (C[2] - 2 * b * (C[1] / a) + b * b * m) / (c * c);
  const middle = (m + o) / 2, half = Math.hypot((m - o) / 2, n);
  if (!(middle - half < FLOOR)) return C;
  const angle = 0.5 * Math.atan2(2 * n, m - o), u = Math.cos(angle), v = Math.sin(angle);
  const [p, q] = [Math.max(middle + half, FLOOR), Math.max(middle - half, FLOOR)];
  const M = [p * u * u + q * v * v, (p - q) * u * v, p * v * v + q * u * u];
  return [
    a * a * M[0],
    a * (b * M[0] + c * M[1]),
    b * b * M[0] + 2 * b * c * M[1] + c * c * M[2],
  ];
}

// log p(x, k), x relative to the origin.
function logJoint(theta, x, y) {
  return theta.means.map(([mx, my], k) => {
    const [a, b, c] = theta.factors[k], u = (x - mx) / a, v = (y - my - b * u) / c;
    return theta.constants[k] - 0.5 * (u * u + v * v);
  });
}

function posterior(scores) {
  const top = Math.max(...scores), P = scores.map((score) => Math.exp(score - top)), all = sum(P);
  return { P: P.map((p) => p / all), top, evidence: all };
}

// E[k] = 1[y = k] - P[k], the residual of the log loss; times P[y], that of the soft error.
function residual(P, label, objective) {
  const E = P.map((p) => -p);
  E[label] = sum(P.filter((_, k) => k !== label));
  return objective === "soft_error" ? E.map((e) => e * P[label]) : E;
}

// One scan: the risks of a model on the points, and the statistics dS of their residual.
function scan(fit, S, number) {
  const theta = parameters(fit, S), m = fit.rows.length;
  const risks = { log_loss: 0, soft_error: 0, error: 0 };
  const W = fit.rows.map(([x, y], i) => {
    const scores = logJoint(theta, x, y), label = fit.labels[i], { P, top, evidence } = posterior(scores);
    risks.log_loss += (Math.log(evidence) - (scores[label] - top)) / m;
    risks.soft_error += (1 - P[label]) / m;
    risks.error += (scores.indexOf(top) === label ? 0 : 1) / m;
    return residual(P, label, fit.objective);
  });
  const value = risks[fit.monitor] - (fit.anchored ? fit.g * logLikelihood(fit, fit.data, theta) / m : 0);
  return { number, S, theta, risks, value, dS: statistics(fit, W) };
}

// The joint log-likelihood of the rows with statistics S: sum_ik W[i][k] log p(x_i, k).
function logLikelihood(fit, S, theta) {
  const model = MODELS[fit.model];
  return sum(S.map((s, k) => {
    const [x, y] = theta.means[k], [a, b, c] = theta.factors[k];
    // The shared moments count once: all classes have one covariance.
    const second = model.tied ? (k ? [0, 0, 0] : fit.tied) : model.second(s);
    const xx = second[0] - 2 * x * s[1] + s[0] * x * x, yy = second[2] - 2 * y * s[2] + s[0] * y * y;
    const xy = fit.model === "gnb" ? 0 : second[1] - x * s[2] - y * s[1] + s[0] * x * y;
    const uu = xx / (a * a), uv = (xy / a - b * uu) / c, vv = (yy - b * b * uu - 2 * b * c * uv) / (c * c);
    return s[0] * theta.constants[k] - 0.5 * (uu + vv);
  }));
}

// The closed form of points [x, y, class], from which calibration starts. Throws what a person can mend.
function begin(points, settings) {
  const classes = [...new Set(points.map((point) => point[2]))].sort();
  if (classes.length < 2) throw new Error("Place points of at least two classes.");
  const m = points.length, r = classes.length;
  const origin = [0, 1].map((j) => sum(points.map((point) => point[j])) / m);
  const rows = points.map(([x, y]) => [x - origin[0], y - origin[1]]);
  const { model, learner, objective, lr } = settings;
  const fit = {
    model, learner, objective, lr, classes, origin, rows, r,
    labels: points.map((point) => classes.indexOf(point[2])),
    g: MODELS[model].fixed ? 0 : settings.g,
    monitor: learner === "fixed" ? "soft_error" : objective,
    widest: Math.max(...[0, 1].map((j) => sum(rows.map((row) => row[j] ** 2)) / m)),
    tied: [3, 4, 5].map((j) => sum(rows.map((row) => FULL(...row)[j]))),
    records: [], longest: 0, ended: "",
  };
  fit.anchored = learner === "adaptive" && fit.g > 0;
  fit.data = statistics(fit, fit.labels.map((label) => classes.map((_, k) => Number(k === label))));
  const closed = covariances(fit, fit.data, fit.data.map((s) => [s[1] / s[0], s[2] / s[0]]));
  requireDetermined(fit, closed);
  fit.reference = closed;
  fit.good = scan(fit, fit.data, 0);
  fit.best = fit.good.value;
  fit.records.push({ ...fit.good, lr: 0, accepted: true, good: fit.good });
  return fit;
}

// Refuse points that do not determine a covariance: the library completes it, this page does not.
function requireDetermined(fit, closed) {
  const spread = [0, 1].map((j) => sum(fit.rows.map((row) => row[j] ** 2)) / fit.rows.length);
  closed.forEach(([a, b, c], k) => {
    const who = MODELS[fit.model].tied ? "The classes need" : `Class ${"ABCD"[fit.classes[k]]} needs`;
    if (!(a > DEGENERATE * spread[0] && c > DEGENERATE * spread[1])) {
      throw new Error(`${who} points that differ in x and in y.`);
    }
    if (!(a * c - b * b > DEGENERATE * a * c)) throw new Error(`${who} points that are not all on a line.`);
  });
}

// S after a step of length lr, pulled towards the data by the anchor, implicitly.
function stepped(fit, S, dS) {
  const pull = fit.lr * fit.g, shrunk = 1 / (1 + pull);
  return fit.g > 0 ? combine([shrunk, S], [shrunk * fit.lr, dS], [shrunk * pull, fit.data])
    : combine([1, S], [fit.lr, dS]);
}

// Halve the step; false if it is too short, or if steps are fixed.
function retry(fit) {
  if (fit.learner !== "adaptive") return false;
  fit.longest = Math.max(fit.longest, fit.lr);
  fit.lr /= 2;
  return fit.lr > 1e-10 * fit.longest;
}

// One iteration: a step, a scan, and the decision whether it is accepted.
function advance(fit) {
  let S = stepped(fit, fit.good.S, fit.good.dS);
  while (!isLegal(S)) {
    if (!retry(fit)) { fit.ended = "no legal step"; return; }
    S = stepped(fit, fit.good.S, fit.good.dS);
  }
  const next = scan(fit, S, fit.records.length), lr = fit.lr;
  const accepted = next.value <= fit.best + 1e-12 * (1 + Math.abs(fit.best)); // false for NaN too
  if (accepted) {
    fit.good = next;
    fit.best = Math.min(fit.best, next.value);
    if (fit.learner === "adaptive") fit.lr *= 2;
  } else if (!retry(fit)) {
    fit.ended = "risk rose";
  }
  fit.records.push({ ...next, lr, accepted, good: fit.good });
}

// Scan until there are `scans` of them, or the fit has ended.
function advanceTo(fit, scans) {
  while (fit.learner !== "closed_form" && !fit.ended && fit.records.length <= scans) advance(fit);
  return fit.records[Math.min(scans, fit.records.length - 1)];
}
