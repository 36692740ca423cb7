// One WebSocket per tab. Pages subscribe to topics; frames arrive at most four times a second, the newest wins. If the
// connection is lost, the page keeps its data, shows their age, and reconnects by itself.

import { stamp } from "./dom.js";
import { API, token } from "./service.js";

/**
 * @template {keyof Api.Topics} T
 * @typedef {{ seq: number, instance: string, at: string, topic: T, data: Api.Topics[T] }} Frame
 */
/** @typedef {(data: never) => void} Listener */
/** @typedef {"connecting" | "live" | "stale" | "off"} State */

const FIRST_RETRY = 250;
const LAST_RETRY = 5000;

/** @type {Map<string, Set<Listener>>} */
const listeners = new Map();
/** @type {Set<(state: State, since: string) => void>} */
const watchers = new Set();
/** @type {Set<() => void>} */
const restarts = new Set();

/** @type {WebSocket | null} */
let socket = null;
let retry = FIRST_RETRY;
let instance = "";
let seen = "";
/** The server's time and ours when the last frame came: countdowns run on it. */
let offset = 0;
/** @type {State} */
let state = "connecting";
let everLive = false;

/** The server's time of now, in milliseconds. */
export function now() {
  return Date.now() + offset;
}

/** What the live dot says. */
export function status() {
  return { state, seen };
}

/**
 * Hear a topic for as long as the signal holds.
 * @template {keyof Api.Topics} T
 * @param {T} topic @param {(data: Api.Topics[T]) => void} hear @param {AbortSignal} signal
 */
export function subscribe(topic, hear, signal) {
  /** @type {Set<Listener>} */
  const set = listeners.get(topic) ?? new Set();
  listeners.set(topic, set);
  set.add(hear);
  tell();
  signal.addEventListener("abort", () => {
    set.delete(hear);
    if (!set.size) listeners.delete(topic);
    tell();
  });
}

/** Hear about the connection itself. @param {(state: State, since: string) => void} hear @param {AbortSignal} [signal] */
export function watch(hear, signal) {
  watchers.add(hear);
  signal?.addEventListener("abort", () => watchers.delete(hear));
}

/** Hear when data has to be fetched anew: after a gap, or another server. @param {() => void} hear @param {AbortSignal} signal */
export function onReturn(hear, signal) {
  restarts.add(hear);
  signal.addEventListener("abort", () => restarts.delete(hear));
}

/** Connect, and stay connected. */
export function start() {
  document.addEventListener("visibilitychange", tell);
  connect();
}

function connect() {
  const url = new URL(`${API}/stream`, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const protocols = ["bayplan.v1"];
  if (token())
    protocols.push(`bayplan.token.${btoa(token()).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "")}`);
  socket = new WebSocket(url, protocols);
  const mine = socket;
  mine.addEventListener("open", () => {
    retry = FIRST_RETRY;
    sent = "";
    tell();
    become("live");
    if (everLive) for (const hear of [...restarts]) hear();
    everLive = true;
  });
  mine.addEventListener("message", (event) => receive(String(event.data)));
  mine.addEventListener("close", () => {
    if (socket !== mine) return;
    socket = null;
    become(everLive ? "stale" : "connecting");
    setTimeout(connect, retry * (0.75 + Math.random() / 2));
    retry = Math.min(LAST_RETRY, retry * 2);
  });
}

/** @param {State} next */
function become(next) {
  state = next;
  document.documentElement.dataset.stream = next;
  for (const hear of [...watchers]) hear(next, seen);
}

let sent = "";

function tell() {
  if (!socket || socket.readyState !== WebSocket.OPEN) return;
  const topics = document.hidden ? [] : [...listeners.keys()].sort();
  const text = JSON.stringify({ topics });
  if (text !== sent) socket.send(text);
  sent = text;
}

/** @param {string} text */
function receive(text) {
  /** @type {Frame<keyof Api.Topics> | { topic: "error" }} */
  let frame;
  try {
    frame = /** @type {typeof frame} */ (JSON.parse(text));
  } catch {
    return;
  }
  // A topic that was refused: that frame has no time, and says nothing of the server's.
  if (frame.topic === "error") return;
  seen = frame.at;
  offset = Date.parse(frame.at) - Date.now() || 0;
  if (instance && frame.instance !== instance) for (const hear of [...restarts]) hear();
  instance = frame.instance ?? instance;
  stamp(`frame ${frame.topic}`, frame.at);
  for (const hear of [...(listeners.get(frame.topic) ?? [])]) hear(/** @type {never} */ (frame.data));
}
