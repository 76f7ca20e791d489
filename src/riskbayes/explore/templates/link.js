// All that was chosen, as the fragment of the address and back. What is not understood is left out.

const MOST_POINTS = 400, MOST_SCANS = 64;
const LENGTHS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];
const ANCHORS = [0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10];
const CHOICES = {
  model: Object.keys(MODELS),
  learner: ["closed_form", "fixed", "adaptive"],
  objective: ["log_loss", "soft_error"],
  shade: ["posterior", "density", "none"],
};
const USUAL = { learner: "fixed", objective: "log_loss", shade: "posterior", lr: 0.1, g: 0, scans: 0 };
const SMALLEST_VIEW = 1e-3, LARGEST = 1e6;

// The range of the points with a margin, with the columns [left, right, bottom, top] kept apart.
function viewOf(points) {
  if (!points.length) return [-4, 4, -3, 3];
  return [0, 1].flatMap((j) => {
    const values = points.map((point) => point[j]), low = Math.min(...values), high = Math.max(...values);
    const margin = Math.max(0.18 * (high - low), high > low ? 0 : 1.5);
    return [low - margin, high + margin].map((value) => Number(value.toFixed(3)));
  });
}

// A set with the settings that suit it.
function chosenSet(name) {
  const set = SETS[name];
  return { ...USUAL, set: name, view: viewOf(set.points), points: set.points, ...set.settings };
}

const nearest = (values, value) => values.reduce((a, b) => Math.abs(b - value) < Math.abs(a - value) ? b : a);

function fromLink(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, "")), name = given.get("set");
  const state = chosenSet(Object.hasOwn(SETS, name) ? name : "far");
  const points = [...(given.get("points") ?? "").matchAll(/([a-d])(-?\d{1,7}(?:\.\d{1,3})?)_(-?\d{1,7}(?:\.\d{1,3})?)/g)]
    .slice(0, MOST_POINTS).map(([, k, x, y]) => [Number(x), Number(y), "abcd".indexOf(k)]);
  if (given.has("points")) {
    const view = (given.get("view") ?? "").split("_").map(Number);
    const sound = view.length === 4 && view.every((value) => Math.abs(value) <= LARGEST) &&
      view[1] - view[0] >= SMALLEST_VIEW && view[3] - view[2] >= SMALLEST_VIEW;
    Object.assign(state, { set: "", points, view: sound ? view : viewOf(points) });
  }
  Object.entries(CHOICES).forEach(([key, known]) => {
    if (known.includes(given.get(key))) state[key] = given.get(key);
  });
  [["lr", LENGTHS], ["g", ANCHORS]].forEach(([key, values]) => {
    if (given.has(key) && Number.isFinite(Number(given.get(key)))) state[key] = nearest(values, Number(given.get(key)));
  });
  const scans = Math.trunc(Number(given.get("scans")));
  if (given.has("scans") && scans >= 0) state.scans = Math.min(scans, MOST_SCANS);
  return state;
}

function toLink(state) {
  const { set, points, view, ...rest } = state;
  const where = set ? { set } : {
    points: points.map(([x, y, k]) => `${"abcd"[k]}${x}_${y}`).join(""),
    view: view.join("_"),
  };
  return `#${new URLSearchParams({ ...where, ...rest })}`;
}
