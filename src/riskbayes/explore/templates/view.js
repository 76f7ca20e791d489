// The picture, the charts, the tables, and what the controls do. `state` is all that was chosen.

const byId = (id) => document.getElementById(id);
const NAMES = "ABCD", WIDTH = 640, HEIGHT = 480;
const svg = byId("picture"), canvas = document.querySelector("canvas");
let state = fromLink(location.hash), fit = null, shown = null, brush = 0, timer = null;
let cross = [WIDTH / 2, HEIGHT / 2], zoom = 1, written = "", writing = null;

function element(name, attributes = {}, parent = null, text = null) {
  const space = parent && parent.namespaceURI === svg.namespaceURI || name === "svg" ? svg.namespaceURI : null;
  const made = space ? document.createElementNS(space, name) : document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  if (text !== null) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

// Places in the picture and the units of the points.
const toPicture = ([x, y]) => {
  const [left, right, bottom, top] = state.view;
  return [WIDTH * (x - left) / (right - left), HEIGHT * (top - y) / (top - bottom)];
};
const toPoint = ([u, v]) => {
  const [left, right, bottom, top] = state.view;
  return [left + (right - left) * u / WIDTH, top - (top - bottom) * v / HEIGHT];
};
const short = (value, digits = 3) => Number.isFinite(value) ? Number(value.toPrecision(digits)).toString().replace("-", "−") : "–";
const fixed = (value, digits) => value.toFixed(digits).replace("-", "−");
const tidy = (value) => Number(value.toFixed(3));

// Everything anew: points or settings have changed.
function refit() {
  stop();
  try {
    fit = begin(state.points, state);
    shown = advanceTo(fit, state.scans);
    state.scans = Math.min(state.scans, fit.records.length - 1);
    fit.closedBoundary = boundary(fit.records[0].theta, state.view, fit.origin, [WIDTH, HEIGHT]);
  } catch (error) {
    [fit, shown] = [null, null];
    byId("status").textContent = error.message;
  }
  draw();
}

function goTo(scans) {
  if (!fit) return;
  shown = advanceTo(fit, Math.max(0, Math.min(scans, MOST_SCANS)));
  state.scans = Math.max(0, Math.min(scans, fit.records.length - 1, MOST_SCANS));
  draw();
}

function draw() {
  if (fit) byId("status").textContent = told();
  drawShading();
  drawPicture();
  drawControls();
  drawCharts();
  drawTables();
  byId("program").textContent = fit ? program() : "";
  clearTimeout(writing);
  writing = setTimeout(writeLink, 150); // browsers refuse an address that changes too often
}

function writeLink() {
  written = toLink(state);
  history.replaceState(null, "", written);
}

// What happened in the last scan, in a sentence.
function told() {
  const { risks } = shown.good, at = state.scans, atEnd = fit.ended && at === fit.records.length - 1;
  const figures = `In-train log loss ${fixed(risks.log_loss, 4)}, soft error ${fixed(100 * risks.soft_error, 2)} %, ` +
    `error ${fixed(100 * risks.error, 1)} %.`;
  const monitored = fit.monitor === "soft_error" ? "soft error" : "log loss";
  const what = fit.anchored ? `${monitored} plus anchor` : monitored;
  if (at === 0) return `Closed form. ${figures}`;
  if (atEnd && fit.ended === "no legal step") return `Scan ${at}: the next step would leave a class without weight; the fit ends. ${figures}`;
  if (atEnd) return `Scan ${at}: the ${what} would rise, so the fit ends with the model of scan ${shown.good.number}. ${figures}`;
  if (!shown.accepted) return `Scan ${at}: the ${what} would rise, so the step is halved to ${short(fit.records[at].lr / 2)}; still the model of scan ${shown.good.number}. ${figures}`;
  return `Scan ${at}, step length ${short(shown.lr)}. ${figures}`;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const channels = (k) => colour(`--class-${NAMES[k].toLowerCase()}`).match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));

function drawShading() {
  const context = canvas.getContext("2d"), { width, height } = canvas;
  context.clearRect(0, 0, width, height);
  if (!fit || state.shade === "none") return;
  const image = context.createImageData(width, height), { theta } = shown.good, r = fit.r;
  const colours = fit.classes.map(channels);
  const peak = Math.max(...theta.constants);
  for (let j = 0; j < height; j += 1) {
    for (let i = 0; i < width; i += 1) {
      const [x, y] = toPoint([(i + 0.5) * WIDTH / width, (j + 0.5) * HEIGHT / height]);
      const scores = logJoint(theta, x - fit.origin[0], y - fit.origin[1]), { P, top, evidence } = posterior(scores);
      const k = scores.indexOf(top);
      const strength = state.shade === "posterior" ? 0.06 + 0.34 * (P[k] - 1 / r) / (1 - 1 / r)
        : 0.6 * Math.min(1, Math.sqrt(Math.exp(top - peak) * evidence));
      const mixed = state.shade === "posterior" ? colours[k]
        : [0, 1, 2].map((c) => sum(P.map((p, own) => p * colours[own][c])));
      image.data.set([...mixed, 255 * strength], 4 * (j * width + i));
    }
  }
  context.putImageData(image, 0, 0);
}

const pathOf = (segments) => segments.map((ends) => `M${ends.map((end) => toPicture(end).map((v) => v.toFixed(2)).join(" ")).join("L")}`).join("");

// The shape of a class, so that colour alone does not tell it.
function mark(k, [u, v], parent, size = 5) {
  const s = size, shapes = [
    `M${u - s} ${v}a${s} ${s} 0 1 0 ${2 * s} 0a${s} ${s} 0 1 0 ${-2 * s} 0z`,
    `M${u - s} ${v - s}h${2 * s}v${2 * s}h${-2 * s}z`,
    `M${u} ${v - 1.25 * s}l${1.15 * s} ${2.1 * s}h${-2.3 * s}z`,
    `M${u} ${v - 1.3 * s}l${1.3 * s} ${1.3 * s}l${-1.3 * s} ${1.3 * s}l${-1.3 * s} ${-1.3 * s}z`,
  ];
  return element("path", { d: shapes[k], class: `point ${NAMES[k].toLowerCase()}` }, parent);
}

// The shape of a class beside its name.
function sample(k, parent) {
  mark(k, [8, 8], element("svg", { viewBox: "0 0 16 16", "aria-hidden": "true", class: "sample" }, parent));
}

function ellipse(theta, k, deviations) {
  const [a, b, c] = theta.factors[k], [mx, my] = theta.means[k];
  const ends = Array.from({ length: 73 }, (_, i) => {
    const angle = 2 * Math.PI * i / 72, u = deviations * Math.cos(angle), v = deviations * Math.sin(angle);
    return toPicture([mx + fit.origin[0] + a * u, my + fit.origin[1] + b * u + c * v]);
  });
  return `M${ends.map((end) => end.map((value) => value.toFixed(1)).join(" ")).join("L")}Z`;
}

function drawPicture() {
  svg.replaceChildren();
  zoom = Math.max(1, 0.9 * WIDTH / (svg.clientWidth || WIDTH));
  svg.style.setProperty("--zoom", zoom);
  drawAxes();
  if (fit) {
    const { theta } = shown.good;
    fit.classes.forEach((name, k) => [1, 2].forEach((deviations) => element("path",
      { d: ellipse(theta, k, deviations), class: `density ${NAMES[name].toLowerCase()}` }, svg)));
    if (state.scans) element("path", { d: pathOf(fit.closedBoundary), class: "closed" }, svg);
    element("path", { d: pathOf(boundary(theta, state.view, fit.origin, [WIDTH, HEIGHT])), class: "boundary", id: "boundary" }, svg);
  }
  state.points.forEach(([x, y, k]) => mark(k, toPicture([x, y]), svg, 5 * zoom));
  const [u, v] = cross;
  element("path", { d: `M${u - 9 * zoom} ${v}h${18 * zoom}M${u} ${v - 9 * zoom}v${18 * zoom}`, class: "cross" }, svg);
  const set = SETS[state.set], many = fit ? `${fit.r} classes` : "no model yet";
  svg.setAttribute("aria-label", `${state.points.length} points${set ? ` of ${set.title}` : ""}, ${many}`);
}

// A few round numbers in a range.
function ticks(low, high, most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((value) => value * power).find((value) => value >= rough);
  return Array.from({ length: most + 1 }, (_, i) => (Math.ceil(low / step) + i) * step).filter((value) => value < high);
}

function drawAxes() {
  const [left, right, bottom, top] = state.view, names = SETS[state.set]?.columns ?? ["x", "y"];
  ticks(left, right, 6).forEach((value) => {
    const [u] = toPicture([value, bottom]);
    element("path", { d: `M${u} ${HEIGHT}v-6`, class: "tick" }, svg);
    if (u > 60 && u < WIDTH - 100 * zoom) element("text", { x: u, y: HEIGHT - 10, "text-anchor": "middle" }, svg, short(value));
  });
  ticks(bottom, top, 5).forEach((value) => {
    const [, v] = toPicture([left, value]);
    element("path", { d: `M0 ${v}h6`, class: "tick" }, svg);
    if (v > 26 * zoom && v < HEIGHT - 30) element("text", { x: 10, y: v + 5 }, svg, short(value));
  });
  element("text", { x: WIDTH - 8, y: HEIGHT - 10, "text-anchor": "end", class: "name" }, svg, names[0]);
  element("text", { x: 10, y: 4 + 16 * zoom, class: "name" }, svg, names[1]);
}

function drawControls() {
  byId("set").value = state.set;
  ["model", "learner", "objective", "shade"].forEach((key) => { byId(key).value = state[key]; });
  const iterative = state.learner !== "closed_form", anchor = iterative && !MODELS[state.model].fixed;
  [["lr", LENGTHS, iterative], ["g", ANCHORS, anchor]].forEach(([key, values, used]) => {
    byId(key).value = values.indexOf(nearest(values, state[key]));
    byId(key).setAttribute("aria-valuetext", String(state[key]));
    byId(`${key}-out`).textContent = state[key];
    byId(key).disabled = !used;
  });
  byId("objective").disabled = !iterative;
  byId("scan").value = state.scans;
  byId("scan-out").textContent = state.scans;
  const over = !fit || !iterative || Boolean(fit.ended && state.scans === fit.records.length - 1) || state.scans >= MOST_SCANS;
  byId("step").disabled = byId("play").disabled = over;
  byId("back").disabled = byId("restart").disabled = !fit || state.scans === 0;
  byId("scan").disabled = !fit || !iterative;
  byId("undo").disabled = byId("clear").disabled = !state.points.length;
  byId("play").textContent = timer === null ? "Run" : "Pause";
  if (over && timer !== null) stop();
  byId("about").textContent = about();
  document.querySelectorAll("#brushes input").forEach((input) => { input.checked = Number(input.value) === brush; });
}

// What the learner does, in two sentences.
function about() {
  if (state.learner === "closed_form") return "The closed form reads the statistics of the labels, and stops there.";
  const toy = MODELS[state.model].fixed, anchor = toy ? "This model has no anchor." : state.g > 0
    ? `The anchor pulls the statistics back to those of the data: g = ${state.g} times the joint likelihood.`
    : "Without an anchor (0) this is plain RC.";
  return state.learner === "fixed"
    ? `S ← S + ${state.lr} · (statistics of the labels − statistics of the posterior), until the soft error rises. ${anchor}`
    : `A step is halved where the objective would rise, and doubled on success. ${anchor}`;
}

// A line for each risk, by scan; a refused trial is a small cross.
function drawCharts() {
  const box = byId("charts");
  box.replaceChildren();
  if (!fit) return;
  [["log_loss", "Log loss", 4, 1], ["soft_error", "Soft error, %", 2, 100]].forEach(([key, title, digits, unit]) => {
    const figure = element("figure", {}, box), w = 300, h = 96;
    const records = fit.records, values = records.map((record) => unit * record.good.risks[key]);
    const high = Math.max(...values), low = Math.min(...values), last = Math.max(8, records.length - 1);
    const share = (value) => high > low ? (value - low) / (high - low) : 0.5;
    const at = (i, value) => [8 + (w - 16) * i / last, h - 14 - (h - 28) * share(value)];
    const first = fixed(values[0], digits), now = fixed(values[state.scans], digits);
    const caption = element("figcaption", {}, figure, `${title} (in-train): ${first} → `);
    element("strong", {}, caption, now);
    const label = `${title}: ${first} in closed form, ${now} at scan ${state.scans}`;
    const chart = element("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": label });
    figure.append(chart);
    element("path", { d: `M8 ${h - 4}h${w - 16}`, class: "tick" }, chart);
    element("path", { d: `M${values.map((value, i) => at(i, value).join(" ")).join("L")}`, class: "line" }, chart);
    records.forEach((record, i) => {
      if (record.accepted) return;
      const [u, v] = at(i, values[i]);
      element("path", { d: `M${u - 3} ${v - 3}l6 6m0 -6l-6 6`, class: "refused" }, chart);
    });
    const [u, v] = at(state.scans, values[state.scans]);
    element("circle", { cx: u, cy: v, r: 4.5, class: "now" }, chart);
  });
}

function table(id, head, rows) {
  const made = byId(id), cell = (row, tag, text, kind) => element(tag, { ...(kind && { class: kind }), ...(tag === "th" && { scope: "col" }) }, row, text);
  made.replaceChildren();
  const top = element("tr", {}, element("thead", {}, made));
  head.forEach((text, j) => cell(top, "th", text, j > 0 ? "number" : ""));
  const body = element("tbody", {}, made);
  rows.forEach(({ name, k, cells }) => {
    const row = element("tr", {}, body), first = element("th", { scope: "row" }, row);
    if (k !== undefined) sample(k, first);
    first.append(name);
    cells.forEach((text) => cell(row, "td", text, "number"));
  });
}

function drawTables() {
  const names = SETS[state.set]?.columns ?? ["x", "y"];
  byId("origin").textContent = fit ? `Sums over the points of a class, about the mean of all points (${short(fit.origin[0])}, ${short(fit.origin[1])})${names[0] === "x" ? "" : `; x is ${names[0]}, y is ${names[1]}`}.` : "";
  if (!fit) { ["statistics", "parameters"].forEach((id) => byId(id).replaceChildren()); return; }
  const { S, theta } = shown.good, first = fit.records[0];
  const moved = (a, b) => Math.abs(b - a) < 5e-4 ? "" : `${b > a ? "+" : "−"}${fixed(Math.abs(b - a), 3)}`;
  table("statistics", ["class", "statistic", "of the data", "now", "moved"], fit.classes.flatMap((name, k) =>
    S[k].map((value, j) => ({
      name: j ? "" : NAMES[name], k: j ? undefined : name,
      cells: [MODELS[fit.model].labels[j], fixed(fit.data[k][j], 3), fixed(value, 3), moved(fit.data[k][j], value)],
    }))));
  const described = (own, k) => {
    const [xx, xy, yy] = own.covariances[k];
    return [own.prior[k], own.means[k][0] + fit.origin[0], own.means[k][1] + fit.origin[1], Math.sqrt(xx), Math.sqrt(yy), xy / Math.sqrt(xx * yy)];
  };
  const both = (k) => described(first.theta, k).map((value, j) => {
    const now = described(theta, k)[j];
    return Math.abs(now - value) < 5e-4 ? fixed(now, 3) : `${fixed(value, 3)} → ${fixed(now, 3)}`;
  });
  table("parameters", ["class", "p(class)", "mean of x", "mean of y", "deviation of x", "deviation of y", "correlation"],
    fit.classes.map((name, k) => ({ name: NAMES[name], k: name, cells: both(k) })));
}

// The same model by the library.
function program() {
  const kinds = { gnb: "GaussianNB", lda: "LinearDiscriminantAnalysis", qda: "QuadraticDiscriminantAnalysis" };
  const learner = state.scans === 0 || state.learner === "closed_form" ? '"closed_form"'
    : `RC(lr=${state.lr}, max_iter=${state.scans}, step="${state.learner}", objective="${state.objective}", generative_weight=${fit.g})`;
  const rows = state.points.map(([x, y]) => `[${x}, ${y}]`).join(", "), wrapped = rows.replace(/(.{60,95}?\]), /g, "$1,\n    ");
  const data = `X = np.array([\n    ${wrapped},\n])\ny = np.array(list("${state.points.map((point) => NAMES[point[2]]).join("")}"))\n`;
  const own = state.model === "toy", start = ["import numpy as np", ""];
  const imports = own ? ["from riskbayes import GenerativeClassifier", "from riskbayes.learners import RC", "from riskbayes.models import GenerativeModel", "from riskbayes.statistics import Statistics"]
    : [`from riskbayes import ${kinds[state.model]}`, "from riskbayes.learners import RC"];
  const toy = `
class Toy(GenerativeModel):
    def statistics(self, Z, W):
        return Statistics({"s0": W.sum(axis=0), "s1": W.T @ Z})

    def parameters(self, S):
        return S["s1"] / S["s0"][:, None]

    def log_joint(self, Z, means):
        return -0.5 * ((Z[:, None, :] - means) ** 2).sum(axis=2) - np.log(2 * np.pi * len(means))

`;
  const made = own ? `GenerativeClassifier(Toy(), learner=${learner})` : `${kinds[state.model]}(prior=None, learner=${learner})`;
  const used = imports.filter((line) => !line.includes("import RC") || learner.startsWith("RC"));
  return `${[...start, ...used].join("\n")}\n${own ? toy : ""}\n${data}clf = ${made}.fit(X, y)\nprint(clf.statistics_["s0"])\n`;
}

function stop() {
  if (timer !== null) clearInterval(timer);
  timer = null;
  byId("play").textContent = "Run";
}

function play() {
  if (timer !== null) { stop(); return; }
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) { goTo(MOST_SCANS); return; }
  timer = setInterval(() => { if (fit) goTo(state.scans + 1); }, 140);
  byId("play").textContent = "Pause";
}

// Points that a person changes are a set of their own.
function changePoints(points) {
  Object.assign(state, { points, set: "", scans: 0 });
  refit();
}

function place(where) {
  const [x, y] = toPoint(where);
  if (state.points.length >= MOST_POINTS) { byId("status").textContent = `There is room for ${MOST_POINTS} points.`; return; }
  changePoints([...state.points, [tidy(x), tidy(y), brush]]);
}

function removeNear(where) {
  const distance = ([x, y]) => { const [u, v] = toPicture([x, y]); return Math.hypot(u - where[0], v - where[1]); };
  const distances = state.points.map(distance), least = Math.min(...distances);
  if (least < 30) changePoints(state.points.filter((_, i) => i !== distances.indexOf(least)));
}

const ERASE = 4;
const act = (where) => brush === ERASE ? removeNear(where) : place(where);

svg.addEventListener("click", (event) => {
  const box = svg.getBoundingClientRect();
  cross = [(event.clientX - box.left) * WIDTH / box.width, (event.clientY - box.top) * HEIGHT / box.height];
  if (event.shiftKey) removeNear(cross); else act(cross);
  drawPicture();
});

svg.addEventListener("keydown", (event) => {
  const far = event.shiftKey ? 40 : 8, moves = { ArrowLeft: [-far, 0], ArrowRight: [far, 0], ArrowUp: [0, -far], ArrowDown: [0, far] };
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (moves[event.key]) {
    cross = cross.map((value, j) => Math.max(0, Math.min(value + moves[event.key][j], [WIDTH, HEIGHT][j])));
    drawPicture();
  } else if (event.key === "Enter" || event.key === " ") act(cross);
  else if (event.key === "Delete" || event.key === "Backspace") removeNear(cross);
  else if (/^[a-d]$/i.test(event.key)) { brush = NAMES.indexOf(event.key.toUpperCase()); drawControls(); } else return;
  event.preventDefault();
});

function choose(settings) {
  Object.assign(state, settings, { scans: 0 });
  refit();
}

function setUp() {
  const options = (id, pairs) => pairs.forEach(([value, text]) => element("option", { value }, byId(id), text));
  options("set", [...Object.entries(SETS).map(([name, set]) => [name, set.title]), ["", "points of my own"]]);
  options("model", Object.entries(MODELS).map(([name, model]) => [name, model.name]));
  [...NAMES, "erase"].forEach((name, k) => {
    const label = element("label", { class: "brush-choice" }, byId("brushes"));
    element("input", { type: "radio", name: "brush", value: k }, label).addEventListener("change", () => { brush = k; });
    if (k < ERASE) sample(k, label);
    label.append(name);
  });
  byId("lr").max = LENGTHS.length - 1;
  byId("g").max = ANCHORS.length - 1;
  byId("set").addEventListener("change", () => {
    state = byId("set").value ? { ...chosenSet(byId("set").value), shade: state.shade } : { ...state, set: "" };
    refit();
  });
  byId("shade").addEventListener("change", () => { state.shade = byId("shade").value; draw(); });
  ["model", "learner", "objective"].forEach((key) => byId(key).addEventListener("change", () => choose({ [key]: byId(key).value })));
  byId("lr").addEventListener("input", () => choose({ lr: LENGTHS[byId("lr").value] }));
  byId("g").addEventListener("input", () => choose({ g: ANCHORS[byId("g").value] }));
  byId("scan").addEventListener("input", () => { stop(); goTo(Number(byId("scan").value)); });
  byId("step").addEventListener("click", () => { stop(); goTo(state.scans + 1); });
  byId("back").addEventListener("click", () => { stop(); goTo(state.scans - 1); });
  byId("restart").addEventListener("click", () => { stop(); goTo(0); });
  byId("play").addEventListener("click", play);
  byId("undo").addEventListener("click", () => changePoints(state.points.slice(0, -1)));
  byId("clear").addEventListener("click", () => changePoints([]));
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(byId("program").textContent);
      byId("copy").textContent = "Copied";
      setTimeout(() => { byId("copy").textContent = "Copy the program"; }, 1500);
    } catch {
      getSelection().selectAllChildren(byId("program"));
    }
  });
  addEventListener("hashchange", () => {
    if (location.hash === written) return;
    state = fromLink(location.hash);
    refit();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("resize", drawPicture);
  byId("main").hidden = false;
  refit();
}

setUp();
