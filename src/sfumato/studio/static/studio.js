// What needs a script: waiting for work, living forms, keys, and taxonomies that are dragged. All else works without.
"use strict";

const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

async function piece(address, options = {}) {
  const answer = await fetch(address, { ...options, headers: { "x-piece": "1" } });
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
  return [...parsed.body.childNodes];
}

// Work: ask how far it is; when it has ended, take the piece that it was for, or look at the page again.
const waiting = new Set();

function follow(within = document) {
  for (const work of all("[data-work]", within)) {
    if (waiting.has(work)) continue;
    waiting.add(work);
    look(work, 150);
  }
}

async function look(work, pause) {
  if (!work.isConnected) return;
  let told;
  try {
    told = await (await fetch("/work?id=" + encodeURIComponent(work.dataset.work))).json();
  } catch {
    told = { state: "working", step: "The studio does not answer." };
    pause = 2000;
  }
  if (told.state === "working") {
    one("[data-step]", work).textContent = told.step;
    const bar = one("progress", work);
    if (typeof told.share === "number") bar.value = told.share;
    else bar.removeAttribute("value");
    setTimeout(look, pause, work, Math.min(pause * 1.3, 1500));
  } else if (work.dataset.then) {
    const place = work.closest("#expected") || work;
    place.replaceWith(...(await piece(work.dataset.then)));
    arrived();
  } else {
    location.replace(location.pathname + location.search);
  }
}

function arrived() {
  for (const found of all(".findings [data-column]")) {
    const cell = document.getElementById("found-" + found.dataset.column);
    if (!cell) continue;
    const line = document.createElement("span");
    line.textContent = (cell.textContent ? " " : "") + one("span", found).textContent;
    cell.append(line);
    cell.classList.toggle("dear", found.classList.contains("dear") && !cell.dataset.bad);
    if (found.classList.contains("bad")) cell.dataset.bad = "1";
    found.removeAttribute("data-column");
  }
  follow();
}

// A plan lives: what changes is kept, and what to expect is worked out anew.
function live(form) {
  let timer;
  const slider = one("#slider"), field = one("#epsilon"), stops = slider.dataset.stops.split(" ");
  const near = () => {
    const wanted = Math.log(parseFloat(field.value) || 1);
    const far = stops.map((stop) => Math.abs(Math.log(stop) - wanted));
    slider.value = far.indexOf(Math.min(...far));
    slider.setAttribute("aria-valuetext", "ε = " + field.value);
  };
  const keep = async () => {
    const pieces = await piece("/plan", { method: "POST", body: new URLSearchParams(new FormData(form)) });
    const place = one("#expected");
    const fresh = pieces.find((node) => node.id === "expected");
    if (!fresh) {
      place.replaceChildren(...pieces);
      return;
    }
    place.replaceWith(...pieces);
    one("#odds").textContent = fresh.dataset.odds;
    one("#same").replaceChildren(one("template[data-same]", fresh).content.cloneNode(true));
    arrived();
  };
  const soon = () => { clearTimeout(timer); timer = setTimeout(keep, 350); };
  near();
  slider.addEventListener("input", () => { field.value = stops[slider.value]; near(); soon(); });
  form.addEventListener("input", (event) => { if (event.target !== slider) { near(); soon(); } });
  one("[data-again]", form).addEventListener("change", (event) => {
    clearTimeout(timer);
    const data = new FormData(form).get("data");
    location.assign("/plan?" + new URLSearchParams({ data, method: event.target.value }));
  });
}

// Columns: find one, and move between them with arrows.
function columns(field) {
  const table = one(field.dataset.filter);
  field.addEventListener("input", () => {
    for (const row of all("tbody tr", table)) row.hidden = !row.dataset.name.includes(field.value.toLowerCase());
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, textarea, select")) {
      event.preventDefault();
      field.focus();
    }
  });
  table.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], cell = event.target.closest("td, th");
    if (!step || !cell || (event.target.tagName === "SELECT" && !event.altKey)) return;
    const kind = (event.target.name || "").replace(/-\d+$/, "");
    const rows = all("tbody tr", table).filter((row) => !row.hidden);
    for (let at = rows.indexOf(cell.parentElement) + step; rows[at]; at += step) {
      const next = kind ? one(`[name^="${kind}-"]`, rows[at]) : one("a", rows[at]);
      if (!next) continue;
      event.preventDefault();
      next.focus();
      return;
    }
  });
}

// A taxonomy: the outline is the truth; the tree shows it, and every change writes it.
function taxonomy(form) {
  const text = one("#outline", form), tree = one(".tree", form), before = [];
  let rows = [], at = 0, dragged = null;
  const read = () => text.value.split("\n").filter((line) => line.trim())
    .map((line) => ({ deep: Math.floor(line.search(/\S/) / 2), name: line.trim(), chosen: false }));
  const end = (from) => {
    let to = from + 1;
    while (to < rows.length && rows[to].deep > rows[from].deep) to += 1;
    return to;
  };
  const write = (fresh) => {
    before.push(text.value);
    rows = fresh;
    text.value = rows.map((row) => "  ".repeat(row.deep) + row.name).join("\n");
    draw();
  };
  const draw = () => {
    at = Math.max(0, Math.min(at, rows.length - 1));
    tree.replaceChildren(...rows.map((row, number) => {
      const item = document.createElement("li");
      item.id = "leaf-" + number;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", row.chosen);
      item.draggable = true;
      item.style.paddingLeft = 0.9 + 1.4 * row.deep + "rem";
      item.textContent = row.name;
      item.className = (end(number) > number + 1 ? "group" : "") + (number === at ? " at" : "");
      return item;
    }));
    if (rows.length) tree.setAttribute("aria-activedescendant", "leaf-" + at);
    tree.children[at]?.scrollIntoView({ block: "nearest" });
  };
  const moved = (from, to, deep) => {
    const stop = end(from);
    if (to > from && to < stop) return;
    const shift = deep - rows[from].deep;
    const taken = rows.slice(from, stop).map((row) => ({ ...row, deep: row.deep + shift }));
    const rest = [...rows.slice(0, from), ...rows.slice(stop)];
    const place = to >= stop ? to - taken.length : to;
    at = place;
    write([...rest.slice(0, place), ...taken, ...rest.slice(place)]);
  };
  const number = (event) => {
    const item = event.target.closest(".tree li");
    return item ? [...tree.children].indexOf(item) : -1;
  };
  tree.addEventListener("click", (event) => {
    const hit = number(event);
    if (hit < 0) return;
    at = hit;
    rows[hit].chosen = !rows[hit].chosen;
    draw();
  });
  tree.addEventListener("dragstart", (event) => { dragged = number(event); });
  tree.addEventListener("dragover", (event) => {
    event.preventDefault();
    all(".over", tree).forEach((item) => item.classList.remove("over"));
    event.target.closest("li")?.classList.add("over");
  });
  tree.addEventListener("drop", (event) => {
    event.preventDefault();
    const hit = number(event);
    if (hit < 0 || dragged === null || hit === dragged) return;
    const inside = end(hit) > hit + 1;
    moved(dragged, inside ? hit + 1 : hit, rows[hit].deep + (inside ? 1 : 0));
    dragged = null;
  });
  tree.addEventListener("keydown", (event) => {
    const key = event.key, stop = end(at);
    if (event.altKey && key === "ArrowUp" && at > 0) {
      let to = at - 1;
      while (to > 0 && rows[to].deep > rows[at].deep) to -= 1;
      moved(at, to, rows[to].deep);
    } else if (event.altKey && key === "ArrowDown" && stop < rows.length) {
      moved(at, end(stop), rows[stop].deep);
    } else if (event.altKey && key === "ArrowRight" && at > 0 && rows[at - 1].deep >= rows[at].deep) {
      moved(at, at, rows[at].deep + 1);
    } else if (event.altKey && key === "ArrowLeft" && rows[at].deep > 0) {
      moved(at, at, rows[at].deep - 1);
    } else if (key === "ArrowDown" || key === "ArrowUp") {
      at += key === "ArrowDown" ? 1 : -1;
      draw();
    } else if (key === " ") {
      rows[at].chosen = !rows[at].chosen;
      draw();
    } else return;
    event.preventDefault();
  });
  const actions = {
    group: () => {
      const name = one("#group", form).value.trim();
      const chosen = rows.map((row, place) => (row.chosen ? place : -1)).filter((place) => place >= 0)
        .filter((place, _, others) => !others.some((other) => other < place && place < end(other)));
      if (!name || !chosen.length) return;
      const inner = chosen.flatMap((place) => rows.slice(place, end(place))
        .map((row) => ({ ...row, chosen: false, deep: row.deep - rows[place].deep + rows[chosen[0]].deep + 1 })));
      const taken = new Set(chosen.flatMap((place) => rows.slice(place, end(place))));
      const head = { deep: rows[chosen[0]].deep, name, chosen: false };
      const fresh = [];
      rows.forEach((row, place) => {
        if (place === chosen[0]) fresh.push(head, ...inner);
        if (!taken.has(row)) fresh.push(row);
      });
      at = fresh.indexOf(head);
      one("#group", form).value = "";
      write(fresh);
    },
    rename: () => {
      const name = one("#rename", form).value.trim(), place = rows.findIndex((row) => row.chosen);
      if (!name || place < 0) return;
      one("#rename", form).value = "";
      write(rows.map((row, number) => (number === place ? { ...row, name, chosen: false } : row)));
    },
    dissolve: () => {
      const place = rows.findIndex((row, number) => row.chosen && end(number) > number + 1);
      if (place < 0) return;
      const stop = end(place);
      write(rows.flatMap((row, number) => (number === place ? []
        : [{ ...row, deep: number > place && number < stop ? row.deep - 1 : row.deep }])));
    },
    undo: () => {
      if (!before.length) return;
      text.value = before.pop();
      rows = read();
      draw();
    },
  };
  for (const button of all("[data-do]", form)) button.addEventListener("click", actions[button.dataset.do]);
  text.addEventListener("input", () => { rows = read(); draw(); });
  one("[data-editor]", form).hidden = false;
  rows = read();
  draw();
}

// A question: values are offered for the attribute that was chosen.
function question(form) {
  const offer = (clause) => {
    const chosen = one("select[name=clause-column]", clause).selectedOptions[0], value = one("input", clause);
    if (chosen.dataset.list) value.setAttribute("list", chosen.dataset.list);
    else value.removeAttribute("list");
    value.placeholder = chosen.dataset.ends || "";
    one("select[name=clause-how]", clause).disabled = Boolean(chosen.dataset.list);
  };
  for (const clause of all(".clause", form)) {
    offer(clause);
    one("select", clause).addEventListener("change", () => offer(clause));
  }
  form.addEventListener("submit", () => all("select:disabled", form).forEach((field) => { field.disabled = false; }));
}

for (const form of all("form[data-piece]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const pieces = await piece(form.action + "?" + new URLSearchParams(new FormData(form)));
    one(form.dataset.piece).replaceWith(...pieces);
    if (!one(form.dataset.piece)) pieces.find((node) => node.tagName)?.setAttribute("id", form.dataset.piece.slice(1));
  });
}
if (one("form[data-live]")) live(one("form[data-live]"));
if (one("[data-filter]")) columns(one("[data-filter]"));
if (one("#taxonomy")) taxonomy(one("#taxonomy"));
if (one("#ask")) question(one("#ask"));
arrived();
