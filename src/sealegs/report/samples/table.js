// The table of samples on a run's page: filtered, sorted, a page at a time, with the details of one below its row.
// Ids, tags and texts come from data files and models: they are written with textContent. Details are plain
// texts, or were drawn and escaped when the page was written, or by the app, which gives them one by one.
"use strict";
(async () => {
  const MOST_NAMES = 500; // options of a tag's list
  const TITLES = { wrong: "Wrong", "right in part": "Right in part", right: "Right", "cut off": "Cut off", "no answer": "No usable answer", error: "Error" };
  const CHECKS = { right: "check confirmed", wrong: "check disputed" }; // what a person said of a check
  const SILENT = "The app does not answer: is it still running?";
  const TEXTS = ["question", "setting", "expected", "answer"];
  const PAGE = matchMedia("(min-width: 60rem)").matches ? 25 : 10; // rows shown at a time: on a phone each is a card

  const served = document.currentScript.dataset.source; // the app's; a report has its data in the page
  let data = served ? await part() : JSON.parse(document.getElementById("samples-data").textContent);
  if (!data) return;
  let texts, tags, outcomes; // of each sample those of TEXTS; the app gives those of further rows when they are shown
  let textColumns, score, judged, scored; // columns that are shown unless all are asked for
  function read() {
    texts = data.texts;
    tags = data.columns.filter((column) => column.names);
    outcomes = Object.fromEntries(Object.entries(data.outcomes).map(([name, rows]) => [name, new Set(rows)]));
    score = data.columns.find((column) => column.kind === "value");
    judged = data.correct.some((share) => share !== null);
    scored = score && judged && score.values.some((value) => value !== null && value !== 0 && value !== 1);
    textColumns = TEXTS.map((title, number) => ({ title, number, kind: "text" }))
      .filter(({ number }) => texts.some((each) => each[number]));
  }
  read();
  const state = { outcomes: new Set(), tags: new Map(), search: "", all: false, sort: null, down: false, page: 0, selected: null };
  let rows = []; // the numbers of the samples that match, in order
  let views = new Map(); // the details of samples: HTML, or plain texts under their names
  let searched = null; // the texts of each sample in lower case, made by the first search in a report
  let hits = null; // the rows in which the app found what is searched

  // Why the app refused, as HTML: its page has a sentence for that.
  async function reason(reply) {
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    return make("span", { class: "warn", role: "alert" }, (page.querySelector("[role=alert]") || page.body).textContent).outerHTML;
  }

  // The app's reply; where it is not there, a sentence in place of its page.
  function reply_to(address, options) {
    return fetch(address, options).catch(() => new Response(SILENT, { status: 503 }));
  }

  // What the app gives when it is asked: the data, or a part of it.
  async function part(query = "") {
    const reply = await reply_to(served + query);
    if (reply.ok) return reply.json();
    document.getElementById("samples-note").innerHTML = await reason(reply);
    return null;
  }

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
    if (column.kind === "text") return texts[row]?.[column.number] ?? "";
    if (!column.names) return column.values[row];
    return column.values[row] < 0 ? null : column.names[column.values[row]];
  }

  function written(value, digits) {
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }

  // A column has one number of digits; a share is in per cent, and in parts of one only where it would be all or nothing.
  function shown(column, row) {
    const value = cell(column, row);
    if (value === null) return "–";
    if (typeof value !== "number") return value;
    if (!column.percent) return written(value, column.digits);
    const percent = 100 * value;
    return `${written(percent, Number.isInteger(percent) || (percent > 0.5 && percent < 99.5) ? 0 : 1)}%`;
  }

  // Choosing and ordering rows

  function matching() {
    const wanted = [...state.tags].map(([column, code]) => [column.values, code]);
    const needle = served ? "" : state.search.toLowerCase();
    if (needle && !searched) searched = data.columns[0].values.map((id, row) => searchable(id, row).toLowerCase());
    const found = [];
    for (let row = 0; row < data.count; row += 1) {
      if (![...state.outcomes].every((name) => outcomes[name].has(row))) continue;
      if (!wanted.every(([values, code]) => values[row] === code)) continue;
      if (needle && !searched[row].includes(needle)) continue;
      if (hits && !hits.has(row)) continue;
      found.push(row);
    }
    return found;
  }

  const ENTITIES = { "&lt;": "<", "&gt;": ">", "&#34;": '"', "&#39;": "'", "&amp;": "&" };
  function bodies(view) {
    if (Array.isArray(view)) return view.map(([, text]) => text).join("\n");
    const drawn = view.match(/<div class="sl-body".*?<\/div>/gs) || [];
    return drawn.join("\n").replace(/<[^>]*>/g, "").replace(/&[^;]*;/g, (entity) => ENTITIES[entity]);
  }

  function searchable(id, row) {
    return [id, ...texts[row], bodies(views.get(row) || "")].join("\n");
  }

  // The codes of a tag are in the order of its names, so that they can be compared in their place.
  function sorted(numbers) {
    if (!state.sort) return data.live ? numbers.reverse() : numbers; // of a run that is being written the newest first
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

  // The texts of a sample and its score; every further column where they are asked for.
  function columns() {
    return [...textColumns, ...(state.all ? data.columns : scored ? [score] : [])];
  }

  function sortBy(column) {
    state.down = state.sort === column && !state.down;
    state.sort = column;
    update();
    head.querySelector("th[aria-sort] button").focus();
  }

  function headCell(column) {
    if (column.kind === "text") return make("th", { scope: "col", class: "left" }, column.title);
    const order = state.sort === column ? (state.down ? "descending" : "ascending") : null;
    const button = make("button", { type: "button", onclick: () => sortBy(column) }, column.title);
    return make("th", { scope: "col", "aria-sort": order, class: column.kind === "value" ? null : "left" }, button);
  }

  // Details

  const detail = make("div", { id: "sample-detail", tabindex: "0", role: "region", "aria-label": "The selected sample" });

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  }

  let drafts = new Map(); // comments that are not saved, by the numbers of their samples
  let filled = null; // the sample whose details are there: drawn anew they would lose a comment that is being typed
  function fill(row) {
    if (row === filled) return;
    leave();
    filled = row;
    detail.replaceChildren();
    const view = views.get(row);
    if (typeof view === "string") put(view);
    else if (data.source) load(row);
    else detail.append(plain(row, view || TEXTS.map((name, number) => [name, texts[row][number] || "–"])));
  }

  function plain(row, parts) {
    const blocks = parts.map(([name, text]) => make("div", { class: "sl-block" },
      make("p", { class: "sl-heading" }, name), make("div", { class: "sl-body", dir: "auto" }, text)));
    return make("div", { class: "sl-view" }, make("p", { class: "sl-title" }, data.columns[0].values[row]), ...blocks);
  }

  // Details as HTML that the template which wrote it has escaped, with the comment that was being typed.
  function put(view) {
    detail.innerHTML = view;
    const comment = detail.querySelector("form.mark")?.elements.comment;
    if (comment && drafts.has(filled)) comment.value = drafts.get(filled);
    drafts.delete(filled);
  }

  function details({ source, ids }, row) {
    return `${source}&part=1&sample=${encodeURIComponent(ids[row])}`;
  }

  // The app gives the details of one sample at a time.
  async function load(row) {
    detail.append(make("p", { class: "soft" }, "Loading…"));
    const reply = await reply_to(details(data, row));
    const view = reply.ok ? await reply.text() : await reason(reply);
    if (reply.ok) views.set(row, view);
    if (filled !== row) return;
    if (reply.ok) put(view);
    else {
      detail.innerHTML = view;
      filled = null; // asked for again when it is opened again
    }
  }

  // What is chosen is in the app's address, so that it can be shared and reloaded.
  function remember() {
    if (!data.source) return;
    const address = new URL(location.href);
    const put = (name, value) => (value ? address.searchParams.set(name, value) : address.searchParams.delete(name));
    put("sample", state.selected === null ? "" : data.ids[state.selected]);
    put("show", [...state.outcomes].join(","));
    put("search", state.search);
    put("sort", state.sort && `${state.down ? "-" : ""}${state.sort.title}`);
    put("all", state.all && "1");
    address.searchParams.delete("tag");
    for (const [column, code] of state.tags) address.searchParams.append("tag", `${column.title}:${code}`);
    history.replaceState(null, "", address);
  }

  function recall() {
    const asked = new URLSearchParams(location.search);
    for (const name of (asked.get("show") || "").split(",")) if (outcomes[name]) state.outcomes.add(name);
    const [, down, sort] = /^(-?)(.*)$/s.exec(asked.get("sort") || "");
    const by = data.columns.find(({ title }) => title === sort) || null;
    Object.assign(state, { search: asked.get("search") || "", all: asked.has("all"), down: down === "-", sort: by });
    for (const text of asked.getAll("tag")) {
      const column = tags.find(({ title }) => title === text.replace(/:\d+$/, ""));
      const code = Number(text.split(":").at(-1));
      if (column && code in column.names) state.tags.set(column, code);
    }
    return data.ids.indexOf(asked.get("sample"));
  }

  const lines = new Map(); // the rows of the table that are shown, by the numbers of their samples
  function select(row) {
    const chosen = lines.get(row);
    const top = chosen?.getBoundingClientRect().top;
    document.getElementById("sample-detail-row")?.remove();
    detail.remove();
    state.selected = row;
    for (const [number, line] of lines) {
      line.classList.toggle("selected", number === row);
      line.querySelector("button").setAttribute("aria-expanded", String(number === row));
    }
    remember();
    if (row === null) return;
    fill(row);
    const cell = make("td", { colspan: columns().length + 1 }, detail);
    chosen.after(make("tr", { id: "sample-detail-row" }, cell));
    scrollBy(0, chosen.getBoundingClientRect().top - top); // the row stays where it is when details above it go
  }

  function step(event, row) {
    const numbers = [...lines.keys()];
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const next = numbers[numbers.indexOf(row) + by];
    if (!by || next === undefined || event.target.tagName !== "BUTTON") return;
    event.preventDefault();
    lines.get(next).querySelector("button").focus();
    select(next);
  }

  // Right, wrong, in between (some of several), or neither.
  function result(row) {
    if (outcomes.error.has(row)) return ["warn", "!", "error"];
    if (outcomes.right.has(row)) return ["right", "✓", "right"];
    if (!judged && score) return ["score", shown(score, row), `score ${shown(score, row)}`];
    if (outcomes.wrong.has(row)) return ["wrong", "✗", "wrong"];
    if (outcomes["right in part"].has(row)) return ["soft", `${Math.round(100 * data.correct[row])}%`, "right in part"];
    return ["soft", "–", outcomes["no answer"].has(row) ? "no usable answer" : "no right or wrong"];
  }

  function sampleRow(row) {
    const [look, sign, words] = result(row);
    const all = columns();
    const cut = outcomes["cut off"].has(row);
    const button = make("button", { type: "button", "aria-expanded": "false", "aria-controls": "sample-detail", "aria-label": `${words}${cut ? " (cut off)" : ""}, sample ${data.columns[0].values[row]}` }, sign);
    const toggle = () => select(state.selected === row ? null : row);
    const marked = data.marks?.[row];
    const said = marked ? [make("small", { class: "marked" }, CHECKS[marked])] : [];
    const head = make("th", { scope: "row", class: look }, button, ...said, ...(cut ? [make("small", { class: "soft" }, "cut off")] : []));
    const line = make("tr", { class: "sample", onclick: toggle, onkeydown: (event) => step(event, row) }, head);
    lines.set(row, line);
    for (const column of all) {
      const text = shown(column, row);
      const look = { text: "text", value: null }[column.kind];
      const span = make("span", { "data-text": column.number ?? null }, text);
      line.append(make("td", { class: look === undefined ? "left" : look, "data-title": column.title }, span));
    }
    return line;
  }

  function draw() {
    const first = state.page * PAGE;
    const page = rows.slice(first, first + PAGE);
    const result_head = judged || !score ? make("th", { scope: "col" }, "result") : headCell(score);
    head.replaceChildren(result_head, ...columns().map(headCell));
    lines.clear();
    body.replaceChildren(...page.map(sampleRow));
    select(lines.has(state.selected) ? state.selected : null);
    const count = (number) => number.toLocaleString("en");
    status.textContent = page.length
      ? `Showing ${count(first + 1)}–${count(first + page.length)} of ${count(rows.length)}`
      : "No sample matches.";
    back.hidden = next.hidden = rows.length <= PAGE;
    back.disabled = state.page === 0;
    next.disabled = first + PAGE >= rows.length;
    for (const [name, button] of buttons) button.setAttribute("aria-pressed", String(name ? state.outcomes.has(name) : !state.outcomes.size));
    loadTexts(page.filter((row) => !texts[row]));
  }

  async function loadTexts(missing) {
    if (!missing.length) return;
    const loaded = await part(`&rows=${missing}`);
    loaded?.forEach((each, index) => {
      const row = missing[index];
      if (each.pop() !== data.ids[row]) return; // the run has ended meanwhile: other rows have these numbers
      texts[row] = each;
      for (const span of lines.get(row)?.querySelectorAll("[data-text]") || []) span.textContent = each[span.dataset.text];
    });
  }

  // Filters

  // A sample can be wrong and cut off: those are shown that have all of the chosen outcomes.
  const ONE_OF = ["wrong", "right in part", "right"];
  function press(name) {
    if (!name) state.outcomes.clear();
    else if (!state.outcomes.delete(name)) state.outcomes.add(name);
    if (ONE_OF.includes(name)) ONE_OF.filter((other) => other !== name).forEach((other) => state.outcomes.delete(other));
    update();
  }

  const buttons = ["", ...Object.keys(TITLES)].map((name) => [name, make("button", { type: "button", onclick: () => press(name) })]);
  const results = make("div", { class: "outcomes", role: "group", "aria-label": "Result" }, ...buttons.map(([, button]) => button));
  const lists = make("span", { style: "display: contents" }); // of the values of tags
  function fillFilters() {
    for (const [name, button] of buttons) {
      const count = name ? outcomes[name].size : data.count;
      button.textContent = `${TITLES[name] || "All"} (${count.toLocaleString("en")})`;
      button.hidden = name !== "" && !state.outcomes.has(name) && (!count || count === data.count);
    }
    results.hidden = buttons.every(([name, button]) => !name || button.hidden);
    const chosen = tags.filter((column) => column.names.length > 1 && column.names.length <= MOST_NAMES);
    const names = JSON.stringify(chosen.map((column) => [column.title, column.names]));
    if (lists.dataset.names !== names) lists.replaceChildren(...chosen.map(tagFilter)); // a list may be open
    lists.dataset.names = names;
  }

  // Names may be cut, and alike: values of a tag are chosen by their codes.
  function tagFilter(column) {
    const number = tags.indexOf(column);
    const list = make("select", { "aria-label": column.title, onchange: () => {
      if (list.selectedIndex) state.tags.set(tags[number], list.selectedIndex - 1);
      else state.tags.delete(tags[number]);
      update();
    } });
    list.append(make("option", {}, "all"), ...column.names.map((name) => make("option", {}, name)));
    list.selectedIndex = (state.tags.get(column) ?? -1) + 1;
    return make("label", {}, column.title, list);
  }

  let timer = 0;
  const asked = data.source ? recall() : -1;
  const search = make("input", { type: "search", value: state.search, oninput: () => {
    clearTimeout(timer);
    timer = setTimeout(find, 150);
  } });
  async function find() {
    const words = state.search = search.value;
    const found = served && words ? await part(`&search=${encodeURIComponent(words)}`) : [];
    if (words !== state.search || !found) return; // another search has begun, or the app refused
    hits = served && words ? new Set(found) : null;
    update();
  }
  const every = make("input", { type: "checkbox", checked: state.all, onchange: () => { state.all = every.checked; draw(); } });
  const filters = make("div", { class: "filters", role: "search", "aria-label": "Filter the samples" },
    results, lists, make("label", {}, "search", search),
    make("label", { class: "tick" }, every, "all columns"));

  const table = make("table", { class: "samples" }, make("thead", {}, head), body);
  const box = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All samples" }, table);
  document.getElementById("samples-table").replaceChildren(
    filters, status, box, make("div", { class: "pages" }, back, next));
  const note = document.getElementById("samples-note");
  if (data.note) note.textContent = data.note;
  fillFilters();
  await find();
  show(asked);
  const packed = document.getElementById("samples-views");
  if (packed) unpacked(packed.textContent).then((list) => {
    views = new Map(data.detailed.map((row, index) => [row, list[index]]));
    searched = filled = null;
    select(state.selected);
  });

  // Of a run that is being written the app has further samples; what is open, chosen and typed stays.
  let turns = 0;
  note.parentNode.addEventListener("renew", async () => {
    const turn = (turns += 1);
    const fresh = await part();
    const found = fresh && state.search ? await part(`&search=${encodeURIComponent(state.search)}`) : null;
    if (!fresh || turn !== turns) return;
    const before = data;
    const numbers = new Map(fresh.ids.map((id, row) => [id, row]));
    const moved = (row) => numbers.get(before.ids[row]) ?? null;
    const [open, line] = [moved(state.selected), lines.get(state.selected)];
    const reply = open !== null && !fresh.live && (await reply_to(details(fresh, open))); // at the end they may have more
    const text = reply?.ok && (await reply.text());
    const view = !detail.querySelector("input:focus") && text; // what is being typed goes on: the next letter is no key
    if (view) leave();
    drafts = new Map([...drafts].map(([row, comment]) => [moved(row), comment]));
    views = new Map(view ? [[open, view]] : []);
    filled = view || filled === null ? null : moved(filled);
    texts.forEach((each, row) => { if (moved(row) !== null) fresh.texts[moved(row)] ??= each; });
    data = fresh;
    read();
    const same = (column) => data.columns.find(({ title, kind }) => title === column?.title && kind === column.kind);
    state.sort = same(state.sort) || null;
    state.tags = new Map([...state.tags].map(([column, code]) => [same(column), same(column)?.names.indexOf(column.names[code])]).filter(([, code]) => code >= 0));
    if (found) hits = new Set(found);
    state.selected = open;
    rows = sorted(matching());
    const focused = document.activeElement;
    const focus = [...lines].find(([, each]) => each.contains(focused))?.[0];
    const top = line?.getBoundingClientRect().top;
    state.page = rows.includes(open) ? Math.floor(rows.indexOf(open) / PAGE) : Math.min(state.page, Math.max(0, Math.ceil(rows.length / PAGE) - 1));
    note.textContent = data.note;
    fillFilters();
    draw();
    if (line && lines.has(open)) scrollBy(0, lines.get(open).getBoundingClientRect().top - top);
    if (focus !== undefined) lines.get(focus)?.querySelector("button").focus({ preventScroll: true });
    else if (focused !== document.activeElement) focused.focus({ preventScroll: true });
  });

  function show(row) {
    if (!rows.includes(row)) return;
    state.page = Math.floor(rows.indexOf(row) / PAGE);
    state.selected = row;
    draw();
    lines.get(row).scrollIntoView();
  }

  // Marks and steps in the app: J and K go to the next and the previous sample, R and W press a button.
  document.addEventListener("keydown", (event) => {
    if (!data.source || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    const key = event.key.toLowerCase();
    const by = { j: 1, k: -1 }[key];
    if (by) show(rows[rows.indexOf(state.selected) + by]);
    else detail.querySelector(`button[data-key="${CSS.escape(key)}"]`)?.click();
  });

  detail.addEventListener("submit", (event) => {
    event.preventDefault();
    save(event.target, filled, event.submitter);
  });

  async function save(form, number, submitter = null) {
    const { comment } = form.elements;
    const id = data.ids[number];
    const before = comment.defaultValue;
    comment.defaultValue = comment.value; // on its way: not typed anew
    const body = new FormData(form, submitter);
    body.set("part", "1"); // the details alone, not a page
    const reply = await reply_to(form.action, { method: "POST", body, keepalive: true });
    const row = data.ids.indexOf(id); // of a run that is being written it may have another by now
    if (!reply.ok) {
      comment.defaultValue = before;
      if (filled !== row) drafts.set(row, body.get("comment"));
      form.querySelector("[role=alert]")?.remove();
      form.insertAdjacentHTML("beforeend", await reason(reply));
      return;
    }
    const view = await reply.text();
    views.set(row, view);
    drafts.delete(row);
    data.marks[row] = new DOMParser().parseFromString(view, "text/html").querySelector("form.mark").dataset.verdict;
    if (filled !== row) {
      lines.get(row)?.replaceWith(sampleRow(row)); // what is open stays as it is
      return;
    }
    filled = null;
    draw();
  }

  // A comment that was typed is saved with the mark that is there; without one it is in its field again when
  // the sample is opened again, and the browser asks before it is lost with the page.
  function leave() {
    const form = detail.querySelector("form.mark");
    if (!form || form.elements.comment.value === form.elements.comment.defaultValue) return;
    if (form.dataset.verdict) save(form, filled);
    else drafts.set(filled, form.elements.comment.value);
  }

  addEventListener("beforeunload", (event) => {
    leave();
    if (drafts.size) event.preventDefault();
  });
})();
