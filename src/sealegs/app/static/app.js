// What pages of the app do without being loaded again: watch a run, and send a form when a choice is made.
"use strict";
(() => {
  const SILENT = "The app does not answer: is it still running?";
  const REFRESH_MS = 2000;

  function show(field, value) {
    const name = field.dataset.field;
    if (field.tagName !== "PROGRESS") {
      if (field.textContent !== value) field.textContent = value; // one that is unchanged is not read out again
    }
    else if (value === null) field.removeAttribute("value");
    else field.value = value;
    if (name === "log") field.hidden = !value;
  }

  // A run that is being written: how far it is, and its report anew when further samples are scored. What a
  // reader opened, chose or reads stays: the table of samples brings itself up to date, around it parts are replaced.
  const process = document.querySelector("[data-events]");
  if (process) {
    const source = new EventSource(process.dataset.events);
    source.addEventListener("message", (event) => {
      const state = JSON.parse(event.data);
      for (const field of process.querySelectorAll("[data-field]")) show(field, state[field.dataset.field]);
      if (state.ended) source.close();
      if (state.ended || (state.version !== process.dataset.version && !document.hidden)) renew(state);
    });
    source.addEventListener("error", () => {
      for (const field of process.querySelectorAll("[data-field=words]")) show(field, SILENT);
    });
  }

  let latest = null; // of what is on its way
  async function renew(state) {
    const { ended } = state;
    if (latest && !ended) return;
    latest = state;
    const reply = await fetch(location.href).catch(() => null);
    const page = reply?.ok && new DOMParser().parseFromString(await reply.text(), "text/html");
    if (latest !== state) return; // the end came meanwhile
    latest = null;
    const [samples, fresh] = [document, page].map((each) => each && each.getElementById("samples"));
    if (!page) return;
    if (!samples || !fresh) { // a page of another kind
      location.reload();
      return;
    }
    const opened = new Set([...document.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
    for (const each of page.querySelectorAll("summary")) each.parentNode.open ||= opened.has(each.textContent);
    const edge = () => { // what is read is above the table's end, or below it
      const { top, bottom } = samples.getBoundingClientRect();
      return bottom < innerHeight / 2 ? bottom : top;
    };
    const before = edge();
    const card = page.querySelector(".process");
    if (card) process.dataset.version = card.dataset.version;
    if (ended) process.remove();
    else card?.remove(); // the one that is here stays, with what has the focus
    samples.querySelector("h2").replaceWith(fresh.querySelector("h2"));
    const [old, now] = [samples, fresh].map((each) => [...each.parentNode.children]);
    old.filter((each) => each !== samples && each !== process).forEach((each) => each.remove());
    samples.before(...now.slice(0, now.indexOf(fresh)));
    samples.after(...now.slice(now.indexOf(fresh) + 1));
    if (before < innerHeight) scrollBy(0, edge() - before);
    samples.dispatchEvent(new Event("renew"));
  }

  // The rows of runs that are being written, as they are on this page when it is asked for again.
  const live = () => document.querySelectorAll("[data-live]");
  const timer = live().length && setInterval(async () => {
    if (document.hidden) return;
    const reply = await fetch(location.href).catch(() => null);
    const page = reply?.ok && new DOMParser().parseFromString(await reply.text(), "text/html");
    for (const row of live()) {
      const fields = [...row.querySelectorAll("[data-field]")];
      const now = page && page.querySelector(`[data-run="${CSS.escape(row.dataset.run)}"]`);
      if (!page) fields.filter(({ dataset }) => dataset.field === "words").forEach((field) => show(field, SILENT));
      else if (!now) row.remove();
      else if (now.dataset.live !== row.dataset.live) row.replaceWith(now); // with other buttons
      else for (const field of fields) {
        const fresh = now.querySelector(`[data-field=${field.dataset.field}]`);
        if (fresh) show(field, fresh.tagName === "PROGRESS" ? fresh.getAttribute("value") : fresh.textContent);
      }
    }
    if (!live().length) clearInterval(timer);
  }, REFRESH_MS);

  for (const list of document.querySelectorAll("[data-submits]")) {
    list.addEventListener("change", () => {
      const { action } = list.form;
      if (list.dataset.submits) list.form.action = list.dataset.submits + list.value;
      list.form.submit();
      list.form.action = action; // for a page that the browser goes back to
    });
  }

  // The page of one sample has the keys of the table of samples.
  const steps = document.querySelector("[data-steps]");
  if (steps) {
    const links = { j: "[data-steps] a[rel=next]", k: "[data-steps] a[rel=prev]" };
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
      const key = event.key.toLowerCase();
      document.querySelector(links[key] || `button[data-key="${CSS.escape(key)}"]`)?.click();
    });

    // A comment that was typed is saved with the mark that is there; without one the browser asks.
    const form = document.querySelector("form.mark");
    const typed = () => form && form.elements.comment.value !== form.elements.comment.defaultValue;
    form?.addEventListener("submit", () => { form.elements.comment.defaultValue = form.elements.comment.value; });
    addEventListener("beforeunload", (event) => {
      if (!typed()) return;
      if (form.dataset.verdict) fetch(form.action, { method: "POST", body: new FormData(form), keepalive: true });
      else event.preventDefault();
    });
  }

  // Fields that belong to one choice of another field.
  for (const part of document.querySelectorAll("[data-shown-for]")) {
    const [name, ...values] = part.dataset.shownFor.split(" ");
    const field = part.closest("form").elements[name];
    const update = () => {
      part.hidden = !values.includes(field.value);
      for (const input of part.querySelectorAll("input, select, textarea")) input.disabled = part.hidden;
    };
    field.addEventListener("change", update);
    update();
  }

  // Suggestions that belong to one choice of another field.
  for (const input of document.querySelectorAll("[data-lists]")) {
    const field = input.form.elements[input.dataset.lists];
    const update = () => input.setAttribute("list", `models-${field.value}`);
    field.addEventListener("change", update);
    update();
  }
})();
