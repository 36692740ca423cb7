// One WebSocket per browser tab. Pages subscribe to topics; a topic has at most four frames a second, and only the
// newest counts. If the connection is lost, the page keeps its data, shows how old they are, and reconnects.

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
const reloadListeners = new Set();

/** @type {WebSocket | null} */
let socket = null;
let retry = FIRST_RETRY;
let instance = "";
let seen = "";
/** The server's time minus the browser's when the last frame came; countdowns use it. */
let offset = 0;
/** @type {State} */
let state = "connecting";
let hasConnected = false;

/** The current time of the server, in milliseconds. */
export function now() {
  return Date.now() + offset;
}

/** The connection state, for the live dot. */
export function status() {
  return { state, seen };
}

/**
 * Subscribe to a topic until the signal aborts.
 * @template {keyof Api.Topics} T
 * @param {T} topic @param {(data: Api.Topics[T]) => void} listener @param {AbortSignal} signal
 */
export function subscribe(topic, listener, signal) {
  /** @type {Set<Listener>} */
  const set = listeners.get(topic) ?? new Set();
  listeners.set(topic, set);
  set.add(listener);
  sendSubscription();
  signal.addEventListener("abort", () => {
    set.delete(listener);
    if (!set.size) listeners.delete(topic);
    sendSubscription();
  });
}

/** Subscribe to connection state changes. @param {(state: State, since: string) => void} listener @param {AbortSignal} [signal] */
export function watch(listener, signal) {
  watchers.add(listener);
  signal?.addEventListener("abort", () => watchers.delete(listener));
}

/**
 * Call back when data must be reloaded: after a reconnect, or when another server instance answers.
 * @param {() => void} listener @param {AbortSignal} signal
 */
export function onReload(listener, signal) {
  reloadListeners.add(listener);
  signal.addEventListener("abort", () => reloadListeners.delete(listener));
}

/** Connect, and stay connected. */
export function start() {
  document.addEventListener("visibilitychange", sendSubscription);
  connect();
}

function connect() {
  const url = new URL(`${API}/stream`, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const protocols = ["bayplan.v1"];
  if (token())
    protocols.push(`bayplan.token.${btoa(token()).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "")}`);
  socket = new WebSocket(url, protocols);
  const current = socket;
  current.addEventListener("open", () => {
    retry = FIRST_RETRY;
    lastMessage = "";
    sendSubscription();
    setState("live");
    if (hasConnected) for (const listener of [...reloadListeners]) listener();
    hasConnected = true;
  });
  current.addEventListener("message", (event) => receive(String(event.data)));
  current.addEventListener("close", () => {
    if (socket !== current) return;
    socket = null;
    setState(hasConnected ? "stale" : "connecting");
    setTimeout(connect, retry * (0.75 + Math.random() / 2));
    retry = Math.min(LAST_RETRY, retry * 2);
  });
}

/** @param {State} next */
function setState(next) {
  state = next;
  document.documentElement.dataset.stream = next;
  for (const listener of [...watchers]) listener(next, seen);
}

let lastMessage = "";

function sendSubscription() {
  if (!socket || socket.readyState !== WebSocket.OPEN) return;
  const topics = document.hidden ? [] : [...listeners.keys()].sort();
  const message = JSON.stringify({ topics });
  if (message !== lastMessage) socket.send(message);
  lastMessage = message;
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
  // The server refused a topic; this frame has no time.
  if (frame.topic === "error") return;
  seen = frame.at;
  offset = Date.parse(frame.at) - Date.now() || 0;
  if (instance && frame.instance !== instance) for (const listener of [...reloadListeners]) listener();
  instance = frame.instance ?? instance;
  stamp(`frame ${frame.topic}`, frame.at);
  for (const listener of [...(listeners.get(frame.topic) ?? [])]) listener(/** @type {never} */ (frame.data));
}
