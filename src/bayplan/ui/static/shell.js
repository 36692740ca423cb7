// The bar at the top: pages, clock with pause, step and speed, connection state, search, theme.

import { draw, h, write } from "./dom.js";
import { count, time } from "./format.js";
import { get, call } from "./service.js";
import { now, status, subscribe, watch } from "./stream.js";
import { currentPlace, to } from "./address.js";
import { PAGES, entryOf, pathOf } from "./pages.js";
import { showNotice } from "./notices.js";
import { errorFacts } from "./loading_states.js";

const SPEEDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** @type {Api.ClockStatus | null} */
let clock = null;
let page = "";
/** @type {() => void} */
let openPalette = () => {};

/** Draw the bar and keep it up to date. @param {() => void} palette opens the search */
export function start(palette) {
  openPalette = palette;
  const forever = new AbortController().signal;
  subscribe(
    "clock",
    (data) => {
      clock = data;
      drawBar();
    },
    forever,
  );
  watch(drawBar);
  void readClock();
  setInterval(tick, 500);
  drawBar();
}

async function readClock() {
  try {
    clock = await get("/clock", {});
    drawBar();
  } catch {
    // Without the clock, the bar shows a dash; the pages show the error of the server.
  }
}

/** Mark a page as the current one. @param {string} name */
export function shown(name) {
  page = name;
  drawBar();
  // On a phone the row of pages is wider than the screen.
  const nav = document.querySelector(".nav");
  const current = nav?.querySelector("[aria-current]");
  if (nav && current instanceof HTMLElement && nav.scrollWidth > nav.clientWidth)
    nav.scrollLeft = current.offsetLeft - (nav.clientWidth - current.offsetWidth) / 2;
}

function drawBar() {
  const bar = document.getElementById("bar");
  if (!bar) return;
  const { state, seen } = status();
  const writes = state === "stale";
  draw(
    bar,
    h(
      "a",
      { class: "brand", href: to("") },
      h("img", { src: new URL("icon.svg", import.meta.url).pathname, width: 18, height: 18, alt: "" }),
      "Bayplan",
    ),
    h(
      "nav",
      { class: "nav", "aria-label": "Pages" },
      PAGES.filter(([, , { menu }]) => menu).map(([pattern, module, { menu }]) =>
        h(
          "a",
          {
            href: to(pathOf(pattern)),
            "aria-current": module === entryOf(page) ? "page" : null,
            "data-test": `nav-${module}`,
          },
          menu,
        ),
      ),
    ),
    h("span", { class: "grow" }),
    clockPart(writes),
    h(
      "span",
      { class: `dot ${state}`, "data-test": "live", title: state === "live" ? "Figures are live" : null },
      h("span", { class: "dot-mark", "aria-hidden": "true" }),
      h(
        "span",
        { class: "dot-text" },
        state === "live" ? "live" : state === "stale" ? `reconnecting, data from ${time(seen)}` : "connecting",
      ),
    ),
    h(
      "button",
      {
        type: "button",
        class: "button search",
        onclick: () => openPalette(),
        "data-test": "search",
        title: "Find an object, a page or an action",
      },
      "Search",
      h("kbd", null, "Ctrl K"),
    ),
    h("a", { class: "button", href: to("new"), "data-test": "new" }, "Create"),
    h("a", { class: "button quiet icon", href: to("settings"), "aria-label": "Settings", title: "Settings" }, "⚙"),
  );
}

/** @param {boolean} offline */
function clockPart(offline) {
  const why = offline ? "No connection: nothing can be changed now" : null;
  if (!clock) return h("span", { class: "clock" }, h("span", { class: "clock-time", "data-clock": "" }, "–"));
  const paused = clock.paused;
  return h(
    "span",
    { class: "clock", role: "group", "aria-label": "Clock", "data-test": "clock" },
    h(
      "span",
      { class: "clock-time", "data-clock": "", title: clock.mode === "virtual" ? "Virtual time" : "Real time" },
      clockText(),
    ),
    h(
      "button",
      {
        type: "button",
        class: "button quiet icon",
        disabled: offline,
        title: why ?? (paused ? "Resume (Space)" : "Pause (Space)"),
        "aria-label": paused ? "Resume" : "Pause",
        "aria-pressed": String(paused),
        onclick: () => void pause(),
        "data-test": "pause",
      },
      paused ? "▶" : "❚❚",
    ),
    h(
      "button",
      {
        type: "button",
        class: "button quiet icon",
        disabled: offline || !paused,
        title: paused ? "Step: one decision (.)" : "Step works while paused",
        "aria-label": "Step one decision",
        onclick: () => void step("decision"),
        "data-test": "step",
      },
      "▸❙",
    ),
    clock.mode === "virtual" || clock.speed !== 1
      ? h(
          "span",
          { class: "speed", title: "Speed (< >)" },
          `×${count(clock.speed) === "0" ? clock.speed : clock.speed}`,
        )
      : null,
  );
}

function clockText() {
  if (!clock) return "–";
  const base = Date.parse(clock.now);
  return time(
    new Date(base + (clock.paused || clock.mode === "virtual" ? 0 : Math.max(0, now() - base))).toISOString(),
  );
}

function tick() {
  const place = document.querySelector("[data-clock]");
  if (place && !document.hidden) write(place, clockText());
}

/** @param {Api.ClockChange} wanted */
async function setClock(wanted) {
  try {
    clock = await call("PUT /clock", {}, wanted);
  } catch (problem) {
    showNotice("bad", `Clock: ${errorFacts(problem).what}`, errorFacts(problem).hint);
  }
  drawBar();
}

/** Pause or continue. */
export async function pause() {
  if (clock && status().state !== "stale") await setClock({ paused: !clock.paused, speed: clock.speed });
}

/** Make one step while paused. @param {"decision" | "event"} by */
export async function step(by) {
  if (!clock?.paused) return;
  try {
    clock = await call("POST /clock/step", {}, { by });
  } catch (problem) {
    showNotice("bad", `Step: ${errorFacts(problem).what}`, errorFacts(problem).hint);
  }
  drawBar();
}

/** Change to the next speed in the list. @param {number} direction 1 or -1 */
export async function faster(direction) {
  if (!clock) return;
  const speed = clock.speed;
  const at = SPEEDS.findIndex((each) => each >= speed);
  await setSpeed(SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, (at < 0 ? SPEEDS.length - 1 : at) + direction))]);
}

/** @param {number} speed */
export async function setSpeed(speed) {
  await setClock({ paused: clock?.paused ?? false, speed });
}

/** The last clock status received. */
export function clockStatus() {
  return clock;
}

/** The speeds that the user can choose. */
export function speeds() {
  return SPEEDS;
}

/** Change to the next theme: light, dark, that of the system. */
export function nextTheme() {
  const next = { light: "dark", dark: "" }[chosenTheme()] ?? "light";
  setTheme(next);
  showNotice("ok", `Theme: ${next || "system"}.`);
}

/** The chosen theme: light, dark, or "" for that of the system. */
export function chosenTheme() {
  return localStorage.getItem("bayplan.theme") ?? "";
}

/** @param {string} theme light, dark, or "" for that of the system */
export function setTheme(theme) {
  localStorage.setItem("bayplan.theme", theme);
  dispatchEvent(new CustomEvent("themechosen", { detail: theme }));
}

/** Set the title of the window. @param {string} text */
export function title(text) {
  document.title = text ? `${text} · Bayplan` : "Bayplan";
}

/** The name of the current page. */
export function currentPage() {
  return currentPlace().page;
}
