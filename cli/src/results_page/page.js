// The view of a result table. All of its state is in the address behind #, so that a link keeps it.
"use strict";
const $ = (id) => document.getElementById(id);
const NONE = "";
const RAW = Symbol("the row as it is in the table");
const SHOWN = 200; // rows of the table below the chart
const MANY = 1500; // dots that are drawn small, and without a link and a label each: keys tell the same
const UNITS = { "": 1, "%": 0.01, b: 1, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40, k: 1e3, m: 1e6, g: 1e9 };

// A value for people: six figures are more than enough.
function short(value) {
  return typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(6))) : value;
}

// A parameter such as 4KiB, 5% or 20k as a number; null if it is none.
function number(value) {
  if (typeof value === "number") return value;
  const parts = /^([0-9.]+)\s*([a-z%]*)$/i.exec(value ?? "");
  const unit = parts && UNITS[parts[2].toLowerCase()];
  return unit ? Number(parts[1]) * unit : null;
}

// A column in which all rows have the same has no place in them: `at` is null.
let places = 0;
const columns = DATA.columns.map((name) => {
  const at = Object.hasOwn(DATA.same, name) ? null : places++;
  const values = new Set(at === null ? [DATA.same[name]] : DATA.rows.map((row) => row[at]));
  values.delete(null);
  const numbers = [...values].map(number);
  const numeric = numbers.length > 0 && numbers.every((value) => value !== null);
  const large = numeric && numbers.some((value) => Math.abs(value) >= 1e5);
  return { name, at, same: DATA.same[name], numeric, large, distinct: values.size };
});
// What the table has of a row in a column.
const entry = (row, { at, same }) => (at === null ? same : row[RAW][at]);
const rows = DATA.rows.map((raw) => ({ [RAW]: raw }));
const named = new Map(columns.map((column) => [column.name, column]));
const varied = DATA.parameters.filter((name) => named.get(name)?.distinct > 1);
const numeric = columns.filter((column) => column.numeric && column.distinct > 1);

// Gives all rows the values of a column, numbers as such. Of many columns, a view needs few.
const given = new Set();
function give(name) {
  const column = named.get(name);
  if (!column || given.has(name)) return;
  given.add(name);
  for (const row of rows) {
    const is = entry(row, column);
    row[name] = column.numeric && is !== null ? number(is) : is;
  }
}
["run", "state"].forEach(give);

// Where the report of a run is.
const report = (row) => `${DATA.base}${row.state === "predicted" ? "predictions" : "runs"}/${row.run}.json`;
const first = (...names) => names.find((name) => named.get(name)?.distinct > 0) ?? columns[0].name;

function defaults() {
  const y = first("wa.device.total", "wa.predicted.device.total.value", "pm.xbi", "pm.predicted.xbi.value");
  const x = varied.find((name) => named.get(name).numeric) ??
    first(...["cache.bytes", "space.physical_bytes"].filter((name) => named.get(name)?.distinct > 1), "tree");
  return { x, y, lx: "", ly: "", c: varied.includes("tree") ? "tree" : varied.find((name) => name !== x) ?? NONE,
    fx: varied.includes("trace") ? "trace" : varied.includes("device") ? "device" : NONE, fy: NONE, p: "" };
}

// State: the controls by their ids, and `not.NAME` for each filter with values that are left out.
// What a link names and the table does not have is left out.
function read() {
  const usual = defaults(), state = { ...usual, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) };
  for (const id of ["x", "y", "c", "fx", "fy"]) {
    if (![...$(id).options].some((option) => option.value === state[id])) state[id] = usual[id];
  }
  return state;
}

function left(state, name) {
  try {
    return new Set(JSON.parse(state["not." + name] ?? "[]"));
  } catch {
    return new Set();
  }
}

function kept(state) {
  const filters = varied.map((name) => [named.get(name), left(state, name)]).filter(([, out]) => out.size);
  return rows.filter((row) => filters.every(([column, out]) => !out.has(String(entry(row, column)))));
}

// The rows that no other one beats in both directions, less being better.
function pareto(points, x, y) {
  const sorted = [...points].sort((a, b) => a[x] - b[x] || a[y] - b[y]);
  let best = Infinity;
  return sorted.filter((row) => row[y] < best && ((best = row[y]), true));
}

function scale(state, axis) {
  const column = named.get(state[axis]);
  const type = !column.numeric ? "point" : state["l" + axis] ? "log" : "linear";
  return { type, label: column.name, grid: true, tickFormat: column.large ? "~s" : undefined };
}

function said(row) {
  const shown = new Set([...DATA.parameters, $("x").value, $("y").value]);
  return [...shown].filter((name) => named.has(name) && entry(row, named.get(name)) != null)
    .map((name) => `${name}: ${short(entry(row, named.get(name)))}`).join("\n");
}

function draw(state) {
  const { x, y, c, fx, fy } = state;
  [x, y, c, fx, fy].forEach(give);
  const isLog = (axis, value) => !state["l" + axis] || !named.get(state[axis]).numeric || value > 0;
  const points = kept(state).filter((row) => row[x] != null && row[y] != null && isLog("x", row[x]) && isLog("y", row[y]));
  const facets = { ...(fx && { fx }), ...(fy && { fy }) };
  const many = points.length > MANY;
  const link = DATA.base === null ? {} : { href: report, target: "_blank" };
  const dots = Plot.dot(points, { x, y, ...(c && { stroke: c }), ...facets, r: many ? 2 : 4,
    ...(many ? {} : { ...link, ariaLabel: said }) });
  // The text is made when it is shown.
  const tip = { title: (row) => row, format: { title: said } };
  const marks = [dots, Plot.tip(points, Plot.pointer({ x, y, ...facets, ...tip }))];
  if (state.p && named.get(x).numeric && named.get(y).numeric) {
    const groups = d3.group(points, (row) => JSON.stringify([fx && row[fx], fy && row[fy]]));
    const front = [...groups.values()].flatMap((group) => pareto(group, x, y));
    const group = fx || fy ? { z: (row) => JSON.stringify([fx && row[fx], fy && row[fy]]) } : {};
    marks.push(Plot.line(front, { x, y, ...facets, ...group, curve: "step-after", strokeDasharray: "4 3", ariaDescription: "Pareto front" }));
    marks.push(Plot.dot(front, { x, y, ...facets, r: 7, ariaDescription: "on the Pareto front" }));
  }
  const chart = Plot.plot({ marks, x: scale(state, "x"), y: scale(state, "y"), marginLeft: 70, marginBottom: 45,
    width: Math.max(320, Math.min(1240, document.body.clientWidth - 32)), height: fy ? undefined : 460,
    ...(c && { color: { legend: true, label: c, ...(named.get(c).numeric ? {} : { scheme: "observable10" }) } }) });
  $("plot").replaceChildren(chart);
  begin(chart, points);
  $("count").textContent = `${points.length} of ${rows.length} runs`;
  return points;
}

// The walk by keys: from left to right and from bottom to top, facet by facet.
let walk = { stops: [], orders: {}, at: null };

function begin(chart, points) {
  // Thousands of links would be thousands of stops of the Tab key.
  chart.querySelectorAll("a").forEach((link) => link.setAttribute("tabindex", "-1"));
  walk = { stops: [...chart.querySelectorAll('[aria-label="dot"]')[0]?.querySelectorAll("circle") ?? []], orders: {}, at: null, points };
  $("chosen").textContent = "";
}

// The dots in the order of an axis, made when a key first asks for it.
function order(axis) {
  if (!walk.orders[axis]) {
    const facets = new Map();
    const place = (circle) => {
      const facet = circle.closest("g");
      if (!facets.has(facet)) facets.set(facet, facets.size);
      const [x, y] = [circle.cx.baseVal.value, -circle.cy.baseVal.value];
      return { circle, key: [facets.get(facet), ...(axis === "x" ? [x, y] : [y, x])] };
    };
    const compare = (a, b) => a.key[0] - b.key[0] || a.key[1] - b.key[1] || a.key[2] - b.key[2];
    walk.orders[axis] = walk.stops.map(place).sort(compare).map((stop) => stop.circle);
  }
  return walk.orders[axis];
}

const STEPS = { ArrowRight: ["x", 1], ArrowLeft: ["x", -1], ArrowUp: ["y", 1], ArrowDown: ["y", -1], Home: ["x", -Infinity], End: ["x", Infinity] };

function follow(circle) {
  const row = walk.points?.[circle?.__data__];
  if (row && DATA.base !== null) open(report(row), "_blank");
}

// A dot without a link is followed all the same.
function click(event) {
  if (!event.target.closest("a") && walk.stops.includes(event.target)) follow(event.target);
}

function key(event) {
  if (event.key === "Enter") follow(walk.at);
  const [axis, step] = STEPS[event.key] ?? [];
  if (!axis || !walk.stops.length) return;
  event.preventDefault();
  const stops = order(axis), from = walk.at ? stops.indexOf(walk.at) : step > 0 ? -1 : stops.length;
  walk.at?.classList.remove("chosen");
  walk.at = stops[Math.max(0, Math.min(stops.length - 1, from + step))];
  walk.at.classList.add("chosen");
  $("chosen").textContent = said(walk.points[walk.at.__data__]).replaceAll("\n", ", ");
}

function fill(points, state) {
  const shown = [...new Set([...DATA.parameters, state.x, state.y, "state"])].filter((name) => named.has(name));
  const cell = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
  const head = document.createElement("tr");
  head.append(...shown.map((name) => Object.assign(cell("th", name), { scope: "col" })), cell("th", "report"));
  $("table").tHead.replaceChildren(head);
  const sorted = named.get(state.y).numeric ? [...points].sort((a, b) => a[state.y] - b[state.y]) : points;
  $("table").tBodies[0].replaceChildren(...sorted.slice(0, SHOWN).map((row) => {
    const line = document.createElement("tr");
    line.append(...shown.map((name) => {
      const is = entry(row, named.get(name));
      const made = cell("td", short(is) ?? "");
      made.className = typeof is === "number" ? "n" : "";
      return made;
    }));
    const last = cell("td", "");
    if (DATA.base !== null) {
      last.append(Object.assign(cell("a", row.run.slice(0, 8)), { href: report(row), target: "_blank" }));
    }
    line.append(last);
    return line;
  }));
}

function save(name, type, text) {
  const link = Object.assign(document.createElement("a"), { download: name, href: `data:${type};charset=utf-8,` + encodeURIComponent(text) });
  link.click();
  return text;
}

function svg() {
  const all = [...$("plot").querySelectorAll("svg")];
  const chart = all.reduce((a, b) => (b.clientWidth * b.clientHeight > a.clientWidth * a.clientHeight ? b : a)).cloneNode(true);
  chart.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return save("results.svg", "image/svg+xml", new XMLSerializer().serializeToString(chart));
}

function csv(state) {
  const quoted = (value) => (/[",\n]/.test(value ?? "") ? `"${String(value).replaceAll('"', '""')}"` : value ?? "");
  const lines = [DATA.columns, ...kept(state).map((row) => columns.map((column) => entry(row, column)))];
  return save("results.csv", "text/csv", lines.map((line) => line.map(quoted).join(",")).join("\n") + "\n");
}

const CONTROLS = ["x", "y", "lx", "ly", "c", "fx", "fy", "p"];

function show() {
  const state = read();
  for (const id of CONTROLS) {
    if ($(id).type === "checkbox") $(id).checked = state[id] !== "";
    else $(id).value = state[id];
  }
  for (const box of $("filters").querySelectorAll("input")) {
    box.checked = !left(state, box.name).has(box.value);
  }
  fill(draw(state), state);
}

function change() {
  const usual = defaults(), state = new URLSearchParams();
  for (const id of CONTROLS) {
    const value = $(id).type === "checkbox" ? ($(id).checked ? "1" : "") : $(id).value;
    if (value !== usual[id]) state.set(id, value);
  }
  for (const name of varied) {
    const out = [...$("filters").querySelectorAll("input")].filter((box) => box.name === name && !box.checked);
    if (out.length) state.set("not." + name, JSON.stringify(out.map((box) => box.value)));
  }
  history.replaceState(null, "", "#" + state);
  show();
}

function build() {
  const option = (name, text) => Object.assign(document.createElement("option"), { value: name, textContent: text ?? name });
  const axes = [...varied, ...numeric.map((column) => column.name).filter((name) => !varied.includes(name))];
  const usual = defaults();
  for (const id of ["x", "y"]) $(id).append(...[...new Set([usual[id], ...axes])].map((name) => option(name)));
  $("c").append(option(NONE, "none"), ...axes.map((name) => option(name)));
  for (const id of ["fx", "fy"]) $(id).append(option(NONE, "none"), ...varied.map((name) => option(name)));
  for (const name of varied.filter((name) => named.get(name).distinct <= 40)) {
    const group = document.createElement("fieldset");
    group.append(Object.assign(document.createElement("legend"), { textContent: name }));
    for (const text of new Set(rows.map((row) => String(entry(row, named.get(name)))))) {
      const label = Object.assign(document.createElement("label"), { className: "box" });
      label.append(Object.assign(document.createElement("input"), { type: "checkbox", name, value: text, checked: true }), text);
      group.append(label);
    }
    $("filters").append(group);
  }
  $("controls").addEventListener("change", change);
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("plot").addEventListener("keydown", key);
  $("plot").addEventListener("click", click);
  $("svg").addEventListener("click", svg);
  $("csv").addEventListener("click", () => csv(read()));
  addEventListener("hashchange", show);
  show();
}

if (rows.length) build();
else $("count").textContent = "No run has ended yet.";
