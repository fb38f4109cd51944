// SPDX-License-Identifier: Apache-2.0
// The console page: asks the API of this server every two seconds, and draws. Text from the graph is only ever set as
// text, never as markup: a key in an event may hold anything.
"use strict";

const LOOK_MS = 2000, NIGHT_MS = 15000, REASONS = 8, FAR = 4;
const by = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
let scored = false;

// --- asking ----------------------------------------------------------------------------------------------------------

async function ask(path, body) {
  const headers = {};
  const key = sessionStorage.getItem("key");
  if (key) headers["Authorization"] = "Bearer " + key;
  if (body) headers["Content-Type"] = "application/json";
  const reply = await fetch(path, {method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body)});
  if (reply.status === 401 || reply.status === 403) by("unlock").hidden = false;
  const said = await reply.json();
  if (!reply.ok && path.indexOf("/readyz") !== 0) throw new Error(said.detail || reply.statusText);
  return said;
}

// --- drawing ---------------------------------------------------------------------------------------------------------

function element(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function plain(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

const cut = (text, length) => text.length > length ? text.slice(0, length - 1) + "…" : text;
const bytes = (n) => n < 1 << 20 ? Math.round(n / 1024) + " KiB" : Math.round(n / (1 << 20)) + " MiB";

// --- now -------------------------------------------------------------------------------------------------------------

function showCounts(status) {
  const applied = Object.values(status.freshness).flatMap((fresh) => fresh.applied || []).reduce((a, b) => a + b, 0);
  const rows = [["events applied", number.format(applied)], ["read since start", number.format(status.events)],
    ["dead letters", number.format(status.dead_letters)],
    ["in memory", bytes(status.memory_bytes)], ["on disk", bytes(status.disk_bytes)],
    ["requests", number.format(status.requests)]];
  by("counts").replaceChildren(...rows.map(([name, value]) => {
    const row = plain("div");
    row.append(plain("dt", name), plain("dd", value));
    return row;
  }));
  const lag = Object.entries(status.freshness)
    .map(([source, fresh]) => source + ": " + (fresh.behind === null ? "no contact with its brokers" :
      `${number.format(fresh.behind)} behind`) + `, ${fresh.lag_seconds.toFixed(1)} s` +
      (fresh.in_open_transactions ? `, ${number.format(fresh.in_open_transactions)} in open transactions` : ""));
  by("lag").textContent = "schema " + status.schema + (lag.length ? " · " + lag.join(" · ") : "") +
    (status.newest_event ? " · newest event " + status.newest_event.slice(0, 19) + "Z" : "");
}

function showReady(ready) {
  const model = ready.model && ready.model.serving ? " · model " + ready.model.serving : "";
  by("state").textContent = ready.ready ? "ready" + model : ready.detail || "not ready";
  by("state").className = ready.ready ? "ready" : "away";
}

async function look() {
  try {
    showReady(await ask("/readyz?verbose=1"));
    showCounts(await ask("/v1/status"));
  } catch (problem) {
    by("state").textContent = problem.message;
    by("state").className = "away";
  }
}

// --- last training ---------------------------------------------------------------------------------------------------

// A gap where there is no number; a number between two gaps is a dot.
function path(values, low, high) {
  const width = values.length > 1 ? 400 / (values.length - 1) : 0, span = high - low || 1;
  const x = (i) => (40 + i * width).toFixed(1), y = (v) => (170 - 140 * (v - low) / span).toFixed(1);
  const step = (v, i) => Number.isFinite(values[i - 1]) ? `L${x(i)} ${y(v)}` : `M${x(i)} ${y(v)}h0`;
  return values.map((v, i) => Number.isFinite(v) ? step(v, i) : "").join(" ");
}

function drawCurve(epochs) {
  const parts = [element("line", {x1: 40, y1: 170, x2: 440, y2: 170, class: "axis"})];
  for (const [name, place] of [["loss", 60], ["validation", 190]]) {
    const values = epochs.map((e) => e[name]), last = values[values.length - 1];
    const numbers = values.filter(Number.isFinite);
    parts.push(element("path", {d: path(values, Math.min(...numbers), Math.max(...numbers)), class: name}));
    parts.push(element("text", {x: place, y: 192, class: name + "-text"},
      name + (Number.isFinite(last) ? " " + last.toFixed(4) : " is not a number")));
  }
  parts.push(element("text", {x: 440, y: 192, "text-anchor": "end", class: "soft"}, epochs.length + " epochs"));
  by("curve").replaceChildren(...parts);
}

function showNight(said) {
  const night = said.night;
  if (night) by("sentence").textContent = night.sentence || `night ${night.name}: ${night.done} of 7 steps done`;
  if (said.trouble) by("sentence").textContent = said.trouble;
  if (said.epochs.length) drawCurve(said.epochs);
  by("overdue").textContent = said.overdue_since ? "No night has ended well since " +
    (said.last_success ? said.last_success.slice(0, 16) + "Z" : "the first began") + ": the next is overdue." : "";
  const example = night && night.example;
  if (example && !scored && !by("key").value) {
    by("type").value = example.type;
    by("key").value = example.key;
    score();
  }
}

async function lookAtNight() {
  try {
    showNight(await ask("/v1/nightly"));
  } catch (problem) {
    by("sentence").textContent = problem.message;
  }
}

// --- score a vertex --------------------------------------------------------------------------------------------------

const middle = {x: 280, y: 180};

function spot(i, count) {
  const angle = -Math.PI / 2 + 2 * Math.PI * (i + 0.5) / count;
  return {x: middle.x + 195 * Math.cos(angle), y: middle.y + 125 * Math.sin(angle)};
}

// around: [{type, key, relation, change or undefined}]
function drawGraph(target, around) {
  const edges = [], nodes = [];
  const most = Math.max(...around.map((one) => Math.abs(one.change || 0)), 1e-9);
  around.forEach((one, i) => {
    const at = spot(i, around.length), change = one.change || 0;
    const kind = one.change === undefined ? "" : change >= 0 ? " raises" : " lowers";
    edges.push(element("line", {x1: middle.x, y1: middle.y, x2: at.x, y2: at.y, class: "edge" + kind,
      "stroke-width": (1 + 5 * Math.abs(change) / most).toFixed(1)}));
    edges.push(element("text", {x: (middle.x + at.x) / 2, y: (middle.y + at.y) / 2 - 4, "text-anchor": "middle",
      class: "soft"}, one.relation));
    nodes.push(element("circle", {cx: at.x, cy: at.y, r: 9}));
    nodes.push(element("text", {x: at.x, y: at.y + (at.y < middle.y ? -15 : 25), "text-anchor": "middle"},
      `${one.type} ${cut(one.key || "deleted", 18)}`));
  });
  nodes.push(element("circle", {cx: middle.x, cy: middle.y, r: 14, class: "target"}));
  nodes.push(element("text", {x: middle.x, y: middle.y + 32, "text-anchor": "middle"},
    `${target.type} ${cut(target.key, 22)}`));
  by("graph").replaceChildren(element("g", {id: "far"}), ...edges, ...nodes);
}

// The neighbours' own neighbours: what several of them share shows as threads between them.
async function drawFar(target, around) {
  const far = new Map(), shown = new Set([...around, target].map((one) => one.type + "/" + one.key));
  const before = target.time ? "&before=" + encodeURIComponent(target.time) : "";
  for (const [i, one] of around.entries()) {
    if (!one.key) continue;
    const path = `/v1/neighbors/${encodeURIComponent(one.type)}/${encodeURIComponent(one.key)}?limit=${FAR}${before}`;
    for (const other of (await ask(path)).neighbors) {
      const name = other.type + "/" + other.key;
      if (!shown.has(name)) far.set(name, (far.get(name) || new Set()).add(i));
    }
  }
  const parts = [], count = far.size;
  [...far.entries()].sort((a, b) => Math.min(...a[1]) - Math.min(...b[1])).forEach(([name, joined], j) => {
    const angle = -Math.PI / 2 + 2 * Math.PI * (j + 0.5) / count;
    const at = {x: middle.x + 262 * Math.cos(angle), y: middle.y + 168 * Math.sin(angle)};
    for (const i of joined) {
      const near = spot(i, around.length);
      const kind = joined.size > 1 ? "thread shared" : "thread";
      parts.push(element("line", {x1: near.x, y1: near.y, x2: at.x, y2: at.y, class: kind}));
    }
    const dot = element("circle", {cx: at.x, cy: at.y, r: joined.size > 1 ? 6 : 4});
    dot.append(element("title", {}, name));
    parts.push(dot);
  });
  by("far").replaceChildren(...parts);
}

function changeItem(change, what) {
  const row = plain("li"), up = change >= 0;
  row.append(plain("span", (up ? "+" : "−") + Math.abs(change).toFixed(2), up ? "raises" : "lowers"), " " + what);
  return row;
}

// Edges without which the score would be another; and of trees, what their columns contribute.
function showReasons(reasons, columns) {
  by("reasons").replaceChildren(...reasons.map((one) => changeItem(one.change,
    `${one.relation} ${one.type} ${one.key || "deleted"}, ${one.time.slice(0, 16)}Z`)));
  by("columns").replaceChildren(...columns.map((one) => changeItem(one.contribution,
    `${one.column} ${one.value === null ? "is missing" : "= " + one.value}`)));
}

function showScore(said) {
  const one = said.scores[0], likely = one.probability;
  const strong = plain("strong", (100 * likely).toFixed(1) + " %", likely >= 0.5 ? "raises" : "");
  by("verdict").replaceChildren(strong, ` likely to be ${said.model.task}; model ${said.model.id}, ` +
    `${one.nodes} nodes and ${one.edges} edges used`);
  drawGraph(one, one.reasons || []);
  drawFar(one, one.reasons || []).catch((problem) => console.warn(problem.message));
  showReasons(one.reasons || [], one.columns || []);
}

async function showNeighbors(type, key, why) {
  const said = await ask(`/v1/neighbors/${encodeURIComponent(type)}/${encodeURIComponent(key)}?limit=4`);
  by("verdict").textContent = "Neighbours only; no score: " + why;
  drawGraph(said, said.neighbors.slice(0, REASONS));
  drawFar(said, said.neighbors.slice(0, REASONS)).catch((problem) => console.warn(problem.message));
  showReasons([], []);
}

async function score() {
  const type = by("type").value.trim(), key = by("key").value.trim();
  scored = true;
  try {
    showScore(await ask("/v1/score", {targets: [{type, key}], reasons: REASONS, columns: REASONS}));
  } catch (problem) {
    try {
      await showNeighbors(type, key, problem.message);
    } catch (other) {
      by("verdict").textContent = other.message;
    }
  }
}

// --- begin -----------------------------------------------------------------------------------------------------------

// "#payment/p1" names what is scored first.
function readAddress() {
  const [type, ...key] = decodeURIComponent(location.hash.slice(1)).split("/");
  if (!key.length) return;
  by("type").value = type;
  by("key").value = key.join("/");
  score();
}

by("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  score();
});
by("unlock").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("key", by("secret").value);
  by("unlock").hidden = true;
  look();
  lookAtNight();
});
addEventListener("hashchange", readAddress);
readAddress();
look();
lookAtNight();
setInterval(look, LOOK_MS);
setInterval(lookAtNight, NIGHT_MS);
