// Placeholders for pages without data: loading, empty, forbidden, deleted. They never show a zero for unknown data, and
// always offer a next step.

import { h, draw } from "./dom.js";
import { ApiError, storeToken } from "./service.js";

/** A placeholder while something loads, of about the final size. @param {number} [lines] */
export function loading(lines = 6) {
  return h(
    "div",
    { class: "loading", "data-test": "loading", "aria-busy": "true", "aria-label": "Loading" },
    Array.from({ length: lines }, (_, index) =>
      h("div", { class: "ghost", style: { width: `${92 - ((index * 17) % 45)}%` } }),
    ),
  );
}

/**
 * A placeholder if there is nothing to show: why, and what the user can do next.
 * @param {string} why @param {...(Node | string | false)} next
 */
export function empty(why, ...next) {
  return h(
    "div",
    { class: "empty", "data-test": "empty" },
    h("p", null, why),
    next.length ? h("div", { class: "row centre" }, ...next) : null,
  );
}

/** Whether an error says that the requested object does not exist. @param {unknown} problem */
export function isMissing(problem) {
  return problem instanceof ApiError && problem.status === 404;
}

/** The facts of any thrown value, for `failure`. @param {unknown} problem @returns {ApiError["facts"]} */
export function errorFacts(problem) {
  if (problem instanceof ApiError) return problem.facts;
  return { what: problem instanceof Error ? problem.message : String(problem) };
}

/** The problems that the server found in a text. @param {unknown} problem */
export function problemsOf(problem) {
  return problem instanceof ApiError ? (problem.facts.problems ?? []) : [];
}

/**
 * An error where the data would be: what, where, what was expected, what to try, and the request number. It stays until replaced.
 * @param {unknown} problem @param {(() => void) | null} [again] called by the button [try again]
 */
export function failure(problem, again) {
  const facts = errorFacts(problem);
  if (facts.status === 401) return tokenForm();
  const line = (/** @type {string} */ name, /** @type {string | undefined} */ value) =>
    value ? [h("dt", null, name), h("dd", null, value)] : [];
  return h(
    "div",
    { class: "note bad", role: "alert", "data-test": "error" },
    h("p", { class: "strong" }, "✕ ", facts.what),
    h(
      "dl",
      { class: "facts" },
      ...line("where", facts.where),
      ...line("got", facts.got),
      ...line("expected", facts.wanted),
      ...line("try", facts.hint),
      ...line("request", facts.request_id),
    ),
    again
      ? h(
          "div",
          { class: "row" },
          h("button", { class: "button", type: "button", onclick: again, "data-test": "try-again" }, "Try again"),
        )
      : null,
  );
}

function tokenForm() {
  const field = h("input", { type: "password", class: "field", "aria-label": "Token", autocomplete: "off" });
  return h(
    "form",
    {
      class: "note wait",
      "data-test": "token",
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        storeToken(
          /** @type {HTMLInputElement} */ (/** @type {Element} */ (event.currentTarget).querySelector("input")).value,
        );
        location.reload();
      },
    },
    h("p", { class: "strong" }, "This server requires a token"),
    h("p", null, "Enter the token of bayplan up --token. The browser stores it in this tab only."),
    h("div", { class: "row" }, field, h("button", { class: "button primary", type: "submit" }, "Open")),
  );
}

/**
 * Fill a panel with loaded data. Old content stays while it reloads, and an error is shown inside the panel.
 * @template T
 * @param {Element} place where to draw
 * @param {() => Promise<T>} load
 * @param {(data: T) => (Node | string | false | null)[]} render
 * @param {{ signal: AbortSignal, lines?: number, failed?: (problem: unknown) => (Node | string)[] }} how failed: elements to show above an
 *   error if nothing is loaded yet, such as a heading
 */
export function loadPanel(place, load, render, how) {
  let shown = "";
  let first = true;
  async function run() {
    if (first) draw(place, loading(how.lines));
    const slow = setTimeout(() => place.classList.add("dim"), 300);
    try {
      const data = await load();
      if (how.signal.aborted) return;
      const text = JSON.stringify(data);
      if (text !== shown) draw(place, ...render(data));
      shown = text;
      first = false;
    } catch (problem) {
      if (how.signal.aborted) return;
      shown = "";
      if (first) draw(place, ...(how.failed?.(problem) ?? []), failure(problem, run));
      else if (!place.querySelector("[data-test=error]")) place.prepend(failure(problem, run));
    } finally {
      clearTimeout(slow);
      place.classList.remove("dim");
    }
  }
  return run;
}
