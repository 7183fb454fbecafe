// The table of samples on a run's page: sorted, filtered, a page at a time. Everything is written with
// textContent: ids, tags and texts come from data files and models. Nothing is loaded and nothing is sent.
"use strict";
(() => {
  const PAGE = 50; // rows shown at a time
  const MOST_NAMES = 500; // options of a tag's list

  const data = JSON.parse(document.getElementById("samples-data").textContent);
  const tags = data.columns.filter((column) => column.names);
  const failed = new Set(data.failed);
  const state = { filters: new Map(), search: "", failedOnly: false, allValues: false, sort: null, down: false, page: 0 };
  let rows = []; // the numbers of the samples that match, in order
  let searched = null; // the texts of each sample in lower case, made by the first search

  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children); // strings become text
    return element;
  }

  // What a cell holds: a number, a text, or null.
  function cell(column, row) {
    if (!column.names) return column.values[row];
    return column.values[row] < 0 ? null : column.names[column.values[row]];
  }

  function shown(value) {
    if (value === null) return "–";
    return typeof value === "number" ? value.toLocaleString("en", { maximumSignificantDigits: 5 }) : value;
  }

  // Choosing and ordering rows

  function textsOf(row) {
    const parts = data.texts[row] || [];
    return parts.filter((_, index) => index % 2 === 1);
  }

  function matching() {
    const wanted = [...state.filters].map(([column, code]) => [column.values, code]);
    const needle = state.search.toLowerCase();
    if (needle && !searched) {
      searched = data.columns[0].values.map((id, row) => [id, ...textsOf(row)].join("\n").toLowerCase());
    }
    const found = [];
    for (let row = 0; row < data.count; row += 1) {
      if (state.failedOnly && !failed.has(row)) continue;
      if (!wanted.every(([values, code]) => values[row] === code)) continue;
      if (needle && !searched[row].includes(needle)) continue;
      found.push(row);
    }
    return found;
  }

  // The codes of a tag are in the order of its names, so that they can be compared in their place.
  function sorted(numbers) {
    if (!state.sort) return numbers;
    const values = state.sort.values;
    const lacks = (row) => values[row] === null || (state.sort.names && values[row] < 0);
    const sign = state.down ? -1 : 1;
    const known = numbers.filter((row) => !lacks(row));
    known.sort((a, b) => (values[a] < values[b] ? -sign : values[a] > values[b] ? sign : a - b));
    return known.concat(numbers.filter(lacks));
  }

  function update() {
    rows = sorted(matching());
    state.page = 0;
    draw();
  }

  // Drawing

  const head = make("tr");
  const body = make("tbody");
  const status = make("p", { class: "soft", role: "status" });
  const back = make("button", { type: "button", onclick: () => turn(-1) }, "Previous");
  const next = make("button", { type: "button", onclick: () => turn(1) }, "Next");

  function turn(step) {
    state.page += step;
    draw();
  }

  function columns() {
    let values = 0;
    return data.columns.filter((column) => {
      if (column.kind === "value") values += 1;
      return column.kind !== "value" || state.allValues || values <= data.few;
    });
  }

  function sortBy(column) {
    state.down = state.sort === column && !state.down;
    state.sort = column;
    update();
    head.querySelector("th[aria-sort] button").focus();
  }

  function headCell(column) {
    const order = state.sort === column ? (state.down ? "descending" : "ascending") : null;
    const words = column.title.split(/(?<=_)/).flatMap((part) => [part, make("wbr", {})]);
    const button = make("button", { type: "button", onclick: () => sortBy(column) }, ...words);
    return make("th", { scope: "col", "aria-sort": order, class: column.kind === "value" ? null : "left" }, button);
  }

  function textsRow(row, id) {
    const td = make("td", { class: "texts", colspan: columns().length });
    const parts = data.texts[row] || [];
    if (!parts.length) td.append(make("p", { class: "soft" }, "There are no texts of this sample on the page."));
    for (let index = 0; index < parts.length; index += 2) {
      td.append(make("p", { class: "soft" }, data.headings[parts[index]]), make("pre", {}, parts[index + 1]));
    }
    return make("tr", { id }, td);
  }

  function sampleRow(row) {
    const id = `sample-${row}`;
    const line = make("tr", { class: failed.has(row) ? "failed" : null });
    const button = make("button", { type: "button", "aria-expanded": "false", onclick: toggle });
    function toggle() {
      const open = button.getAttribute("aria-expanded") === "true";
      if (open) line.nextElementSibling.remove();
      else line.after(textsRow(row, id));
      button.setAttribute("aria-expanded", String(!open));
      if (open) button.removeAttribute("aria-controls");
      else button.setAttribute("aria-controls", id);
    }
    for (const column of columns()) {
      const text = shown(cell(column, row));
      if (column === data.columns[0]) {
        button.append(text);
        line.append(make("th", { scope: "row" }, button));
      } else {
        line.append(make("td", { class: column.kind === "value" ? null : "left" }, text));
      }
    }
    return line;
  }

  function draw() {
    const first = state.page * PAGE;
    const page = rows.slice(first, first + PAGE);
    head.replaceChildren(...columns().map(headCell));
    body.replaceChildren(...page.map(sampleRow));
    const count = (number) => number.toLocaleString("en");
    const range = page.length ? `; shown are ${count(first + 1)} to ${count(first + page.length)}` : "";
    status.textContent = `${count(rows.length)} of ${count(data.count)} samples${range}.`;
    back.disabled = state.page === 0;
    next.disabled = first + PAGE >= rows.length;
  }

  // Filters

  // Names may be cut, and alike: values of a tag are chosen by their codes.
  function filterBy(column, code) {
    if (code >= 0 && code < column.names.length) state.filters.set(column, code);
    else state.filters.delete(column);
  }

  function tagFilter(column) {
    const list = make("select", { "aria-label": column.title, onchange: () => {
      filterBy(column, list.selectedIndex - 1);
      update();
    } });
    list.append(make("option", {}, "all"), ...column.names.map((name) => make("option", {}, name)));
    return make("label", {}, column.title, list);
  }

  function checkbox(change) {
    const box = make("input", { type: "checkbox", onchange: () => change(box.checked) });
    return box;
  }

  function tick(title, box) {
    return make("label", { class: "tick" }, box, title);
  }

  let timer = 0;
  const search = make("input", { type: "search", oninput: () => {
    clearTimeout(timer);
    timer = setTimeout(() => { state.search = search.value; update(); }, 150);
  } });

  function filters() {
    const chosen = tags.filter((column) => column.names.length > 1 && column.names.length <= MOST_NAMES);
    const all = tick("all values", checkbox((on) => { state.allValues = on; draw(); }));
    return make("div", { class: "filters", role: "search", "aria-label": "Filter the samples" },
      ...chosen.map(tagFilter),
      make("label", {}, "text", search),
      tick("failed only", checkbox((on) => { state.failedOnly = on; update(); })),
      ...(data.columns.filter((column) => column.kind === "value").length > data.few ? [all] : []));
  }

  const table = make("table", {}, make("thead", {}, head), body);
  const box = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All samples" }, table);
  document.getElementById("samples-table").replaceChildren(
    filters(), status, box, make("div", { class: "pages" }, back, next));
  update();
})();
