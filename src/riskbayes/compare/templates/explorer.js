{{ interpreter }}
// A row whose cells the reader changes.
const explorer = byId("explorer");
if (explorer) {
  const MOST_BARS = 10, MOST_CHANCES = 5, OPEN = 8;
  const { model: value, order, rows } = JSON.parse(explorer.dataset.model);
  const model = createModel(value), columns = order.map((j) => ({ ...model.columns[j], j }));
  const unread = new Set(model.columns.filter((_, j) => !order.includes(j)).map(({ name }) => name));
  let start = rows[0], cells = [...start.cells], bars = null, ends = [0, 0];

  // Elements. Texts of the table are text, of whichever direction.
  const make = (tag, attributes = {}, ...children) => {
    const svg = ["svg", "line", "rect", "text"].includes(tag);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    Object.entries(attributes).forEach(([name, content]) => made.setAttribute(name, content));
    made.append(...children);
    return made;
  };
  const foreign = (words) => make("bdi", {}, words || "(empty)");
  const brief = (number) => String(Number(number.toPrecision(6)));
  const signed = (number) => (number < 0 ? "\u2212" : "+") + Math.abs(number).toFixed(2);
  const percent = (share) => (share > 0.9995 && share < 1 ? "> 99.9" : share < 0.0005 && share > 0 ? "< 0.1"
    : (100 * share).toFixed(1)) + "\u202f%";

  // Places on a strip in percent, and round ticks, as the other charts have them.
  const roundStep = (step) => {
    const power = 10 ** Math.floor(Math.log10(step));
    return [1, 2, 5, 10].map((factor) => factor * power).find((found) => found >= step * (1 - 1e-9));
  };
  const scaleOver = ([low, high]) => {
    const step = roundStep((high - low || 1) / 5);
    const first = Math.floor(low / step + 1e-9), last = Math.ceil(high / step - 1e-9);
    const ticks = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
    const width = ticks[ticks.length - 1] - ticks[0] || 1;
    return { ticks, at: (x) => 100 * (x - ticks[0]) / width };
  };
  const strip = (name, figure, scale, from, to, kind, rowKind = "") => {
    const svg = make("svg", { class: "strip", height: 26 });
    scale.ticks.forEach((tick) => {
      const x = `${scale.at(tick)}%`;
      svg.append(make("line", { class: Math.abs(tick) < 1e-12 ? "zero" : "grid", x1: x, x2: x, y1: 0, y2: "100%" }));
    });
    const [left, right] = [from, to].map(scale.at).sort((a, b) => a - b);
    svg.append(make("rect", { class: `bar ${kind}`, x: `${left}%`, width: `${Math.max(right - left, 0.25)}%`, y: 6, height: 14, rx: 1.5 }));
    return make("div", { class: `row ${rowKind}`.trim() }, make("span", { class: "name" }, ...name), svg, make("span", { class: "figure" }, figure));
  };

  // Two classes: the second is in favour, as in the charts above; of more the most probable one and the next.
  const sides = (P) => {
    const sorted = [...model.classes].sort((a, b) => P[b] - P[a]);
    return model.classes.length === 2 ? [model.classes[1], model.classes[0]] : sorted.slice(0, 2);
  };

  const showChances = (P, positive, negative) => {
    const sorted = [...model.classes].sort((a, b) => P[b] - P[a]);
    byId("explorer-said").replaceChildren(foreign(sorted[0]), `: ${percent(P[sorted[0]])}`);
    const kind = (label) => (label === positive ? "for" : label === negative ? "against" : "quiet");
    const scale = { ticks: [0, 0.5, 1], at: (share) => 100 * share };
    const shown = model.classes.length <= MOST_CHANCES ? model.classes : sorted.slice(0, MOST_CHANCES);
    const strips = shown.map((label) => strip([foreign(label)], percent(P[label]), scale, 0, P[label], kind(label)));
    byId("explorer-chances").replaceChildren(make("div", { class: "strips", role: "img", "aria-label":
      `Probabilities: ${shown.map((label) => `${label} ${percent(P[label])}`).join(", ")}.` }, ...strips));
  };

  // What a cell is called in the chart: the values of its column, or of the two of a pair.
  const shownCell = (cell) => (cell === null ? "missing" : typeof cell === "number" ? brief(cell) : String(cell));
  const nameOf = (name) => {
    const column = model.columns.findIndex((own) => own.name === name);
    return column < 0 ? [foreign(name)] : [foreign(name), make("small", {}, " = ", foreign(shownCell(cells[column])))];
  };

  const showWhy = (P, positive, negative) => {
    const { prior, columns: told } = model.contributions(cells);
    const difference = (own) => own[positive] - own[negative];
    const sizes = new Map(told.filter(({ name }) => !unread.has(name)).map(({ name, values }) => [name, difference(values)]));
    // The order stays while cells change, so that a bar can be followed.
    bars ??= [...sizes].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, MOST_BARS).map(([name]) => name);
    const parts = [[["prior"], difference(prior)], ...bars.map((name) => [nameOf(name), sizes.get(name)])];
    const others = [...sizes].filter(([name, size]) => !bars.includes(name) && size !== 0);
    if (others.length) parts.push([[`${others.length} other${others.length > 1 ? "s" : ""}`], others.reduce((sum, [, size]) => sum + size, 0)]);
    const places = parts.reduce((found, [, size]) => [...found, found[found.length - 1] + size], [0]);
    ends = [Math.min(ends[0], ...places), Math.max(ends[1], ...places)]; // the scale grows and does not jump
    const scale = scaleOver(ends), total = places[places.length - 1];
    const strips = parts.map(([name, size], i) =>
      strip(name, signed(size), scale, places[i], places[i + 1], size >= 0 ? "for" : "against"));
    strips.push(strip(["total"], signed(total), scale, 0, total, "total", "total"));
    const axis = make("svg", { class: "strip", height: 17 });
    scale.ticks.forEach((tick) => axis.append(make("text", { x: `${scale.at(tick)}%`, y: 13, "text-anchor": "middle" }, brief(tick).replace("-", "\u2212"))));
    strips.push(make("div", { class: "row axis" }, make("span", { class: "name" }), axis, make("span", { class: "figure unit" }, "log-odds")));
    byId("explorer-waterfall").replaceChildren(make("div", { class: "strips", role: "img", "aria-label":
      `Waterfall of the changed row: from the prior to log-odds of ${signed(total)} for ${positive} against ${negative}.` }, ...strips));
    const sample = (kind) => make("svg", { class: "sample", width: 16, height: 16 }, make("rect", { class: `bar ${kind}`, x: 1, y: 3, width: 14, height: 10, rx: 1.5 }));
    byId("explorer-legend").replaceChildren(...[["for", positive], ["against", negative]].map(([kind, label]) =>
      make("li", {}, sample(kind), make("span", {}, "for ", foreign(label)))));
  };

  const answer = () => {
    try {
      const P = model.predict(cells), [positive, negative] = sides(P);
      showChances(P, positive, negative);
      showWhy(P, positive, negative);
    } catch (error) {
      byId("explorer-said").textContent = error.message;
    }
  };
  const change = (j, cell) => { cells[j] = cell; answer(); };

  // A control for each column that the model reads.
  const missingBox = (column, others) => {
    const box = make("input", { type: "checkbox", "aria-label": `${column.name} is missing` });
    box.checked = cells[column.j] === null;
    const apply = () => others.forEach((other) => { other.disabled = box.checked; });
    apply();
    return [box, make("label", { class: "gone" }, box, "missing"), apply];
  };
  const numberControl = (column, id) => {
    const { j, low, high, whole } = column, known = low < high;
    const cell = () => (typeof cells[j] === "number" ? cells[j] : known ? (low + high) / 2 : 0);
    const typed = make("input", { type: "number", step: "any", id, value: brief(cell()) });
    const step = known ? (whole ? 1 : roundStep((high - low) / 200)) : 1;
    const slider = known && make("input", { type: "range", min: low, max: high, step, value: cell(), "aria-label": column.name });
    const [box, gone, apply] = missingBox(column, [typed, ...(slider ? [slider] : [])]);
    const read = () => { if (Number.isFinite(typed.valueAsNumber)) change(j, typed.valueAsNumber); };
    typed.addEventListener("input", () => { if (slider) slider.value = typed.value; read(); });
    if (slider) slider.addEventListener("input", () => { typed.value = brief(slider.valueAsNumber); change(j, slider.valueAsNumber); });
    box.addEventListener("change", () => { apply(); if (box.checked) change(j, null); else read(); });
    return [typed, ...(slider ? [slider] : []), gone];
  };
  const choiceControl = (column, id) => {
    const { j } = column, values = [...(column.categories ?? []), null];
    if (!values.includes(cells[j])) values.push(cells[j]); // one that the model has not seen
    const select = make("select", { id }, ...values.map((own, i) => make("option", { value: i }, own === null ? "(missing)" : String(own))));
    select.selectedIndex = values.indexOf(cells[j]);
    select.addEventListener("change", () => change(j, values[select.selectedIndex]));
    return [select];
  };
  const dateControl = ({ j }, id) => {
    const input = make("input", { type: "date", id, value: String(cells[j] ?? "").slice(0, 10) });
    input.addEventListener("input", () => change(j, input.value || null));
    return [input];
  };
  const markControl = (column, id) => {
    const any = { words: "there", number: 0 }[column.reads[0].kind] ?? "2000-01-01";
    const there = start.cells[column.j] ?? any;
    const select = make("select", { id }, make("option", {}, "not missing"), make("option", {}, "(missing)"));
    select.selectedIndex = cells[column.j] === null ? 1 : 0;
    select.addEventListener("change", () => change(column.j, select.selectedIndex ? null : there));
    return [select];
  };
  const controls = { number: numberControl, category: choiceControl, date: dateControl, mark: markControl };

  const build = () => {
    const fields = columns.map((column, i) => {
      const id = `explorer-cell-${i}`;
      return make("div", { class: `field ${column.kind}` }, make("label", { for: id }, foreign(column.name)), ...controls[column.kind](column, id));
    });
    const rest = fields.slice(OPEN);
    const folded = make("details", {}, make("summary", {}, `${rest.length} more column${rest.length > 1 ? "s" : ""}`), ...rest);
    byId("explorer-cells").replaceChildren(...fields.slice(0, OPEN), ...(rest.length ? [folded] : []));
  };
  const begin = () => {
    cells = [...start.cells];
    [bars, ends] = [null, [0, 0]];
    build();
    answer();
  };
  const chosen = byId("explorer-row");
  chosen.append(...rows.map(({ row }) => make("option", {}, `row ${row}`)));
  chosen.addEventListener("change", () => { start = rows[chosen.selectedIndex]; begin(); });
  byId("explorer-back").addEventListener("click", begin);
  explorer.hidden = false;
  chosen.selectedIndex = 0;
  begin();
}
