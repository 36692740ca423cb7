// Requests to the server: the Bayplan API under /bayplan/v1, and the Kubernetes API. All failures become the same kind
// of error, with what, where, what was expected and what to try, so that every page shows errors in the same form.

import { beforePaint } from "./dom.js";

export const API = "/bayplan/v1";
const TOKEN = "bayplan.token";
const EMPTY_STATUSES = new Set([204, 205, 304]);

/**
 * A problem in a request body, with its line if the body is a text.
 * @typedef {{ line?: number, path?: string, message: string, hint?: string }} Problem
 */
/**
 * The error response of the Kubernetes API.
 * @typedef {{ kind: "Status", message?: string, reason?: string, details?: { causes?: { field?: string, message?: string }[] } }} Status
 */

/** An error of a request. */
export class ApiError extends Error {
  /**
   * @param {{ what: string, where?: string, got?: string, wanted?: string, hint?: string, request_id?: string,
   *   status?: number, problems?: Problem[] }} facts
   */
  constructor(facts) {
    super(facts.what);
    this.name = "ApiError";
    this.facts = facts;
    this.status = facts.status ?? 0;
  }
}

/** Responses that prefetch.js requested for this page, by address; each is used once. @type {Map<string, Promise<Response>>} */
const prefetched = window.prefetched ?? new Map();

/** Prefetched responses expire after this time. */
const PREFETCH_MAX_AGE_MS = 30_000;

/** @param {string} address @param {string | undefined} method */
function takePrefetched(address, method) {
  const answer = method === undefined && performance.now() < PREFETCH_MAX_AGE_MS ? prefetched.get(address) : undefined;
  prefetched.delete(address);
  return answer;
}

/** Discard prefetched responses: they belong to another page. */
export function clearPrefetched() {
  prefetched.clear();
}

let pending = 0;

/** Expose to tests whether a request or page load is pending, or its outcome not painted yet. @param {number} delta */
export function trackPending(delta) {
  pending += delta;
  if (pending) showIdle();
  else beforePaint(showIdle);
}

function showIdle() {
  document.documentElement.dataset.idle = String(pending === 0);
}

/** Store the access token in this tab. @param {string} token */
export function storeToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

/** The access token, or "". */
export function token() {
  return sessionStorage.getItem(TOKEN) ?? "";
}

/**
 * Send a request and return the response; errors of the server are thrown.
 * @param {string} address @param {{ method?: string, body?: string, type?: string, accept?: string, signal?: AbortSignal }} [how]
 * @returns {Promise<Response>}
 */
export async function send(address, how = {}) {
  /** @type {Record<string, string>} */
  const headers = { Accept: how.accept ?? "application/json" };
  if (how.body !== undefined) headers["Content-Type"] = how.type ?? "application/json";
  if (token()) headers.Authorization = `Bearer ${token()}`;
  trackPending(1);
  try {
    let answer, body;
    try {
      answer = await (takePrefetched(address, how.method) ??
        fetch(address, {
          method: how.method ?? "GET",
          headers,
          body: how.body,
          signal: how.signal,
          cache: "no-cache",
        }));
      // The request is pending until its body has arrived, too.
      body = await answer.arrayBuffer();
    } catch (problem) {
      if (how.signal?.aborted) throw problem;
      throw new ApiError({
        what: "The server does not answer",
        where: address,
        hint: "is it still running? This page tries again by itself",
        status: 0,
      });
    }
    // Responses with these statuses must not have a body, not even an empty one.
    const whole = new Response(EMPTY_STATUSES.has(answer.status) ? null : body, answer);
    if (!whole.ok) throw await errorFrom(whole, address);
    return whole;
  } finally {
    trackPending(-1);
  }
}

/** @param {Response} answer @param {string} address */
async function errorFrom(answer, address) {
  const text = await answer.text().catch(() => "");
  const { status } = answer;
  /** @type {Partial<Api.Error> | Partial<Status> | null} */
  let body = null;
  try {
    body = /** @type {Partial<Api.Error> | Partial<Status> | null} */ (JSON.parse(text));
  } catch {
    // The response is not from Bayplan: its text is all there is.
  }
  if (body && "error" in body && body.error) return new ApiError({ ...body.error, status });
  if (body && "kind" in body && body.kind === "Status") {
    const problems = (body.details?.causes ?? []).map(({ field, message }) => ({ path: field, message: message ?? "" }));
    return new ApiError({ what: body.message ?? body.reason ?? "", where: address, status, problems });
  }
  const where = decodeURI(address.split("?")[0]);
  return new ApiError({ what: text.trim().slice(0, 300) || `${status} ${answer.statusText}`, where, status });
}

/** @typedef {string | number | boolean | null | undefined} Value */

/**
 * The address of a GET operation of the Bayplan API. Names go into the path, other parameters into the query.
 * @template {keyof Api.Gets} P
 * @param {P} path @param {Api.Gets[P]["parameters"]} parameters
 */
export function apiAddress(path, parameters) {
  return API + filled(path, parameters);
}

/** @param {string} path @param {Record<string, Value>} parameters */
function filled(path, parameters) {
  const rest = { ...parameters };
  const address = path.replace(/\{(\w+)\}/g, (_, name) => {
    const value = String(rest[name]);
    delete rest[name];
    return encodeURIComponent(value);
  });
  return address + queryText(rest);
}

/**
 * Get data from the Bayplan API.
 * @template {keyof Api.Gets} P
 * @param {P} path @param {Api.Gets[P]["parameters"]} parameters @param {AbortSignal} [signal]
 * @returns {Promise<Api.Gets[P]["answer"]>}
 */
export async function get(path, parameters, signal) {
  const answer = await send(apiAddress(path, parameters), { signal });
  return /** @type {Api.Gets[P]["answer"]} */ (await answer.json());
}

/** @param {Record<string, Value>} query */
export function queryText(query) {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "" && value !== false)
      pairs.set(name, String(value === true ? 1 : value));
  }
  const text = pairs.toString();
  return text ? `?${text}` : "";
}

/**
 * Call an operation of the Bayplan API that writes.
 * @template {Api.Writes} O
 * @param {O} operation method and path @param {Api.Operations[O]["parameters"]} parameters
 * @param {Api.Operations[O]["body"]} [body] a text is sent as YAML @param {AbortSignal} [signal]
 * @returns {Promise<Api.Operations[O]["answer"]>}
 */
export async function call(operation, parameters, body, signal) {
  const [method, path] = operation.split(" ");
  const isText = typeof body === "string";
  const answer = await send(API + filled(path, parameters), {
    method,
    body: isText || body === undefined ? body : JSON.stringify(body),
    type: isText ? "application/yaml" : "application/json",
    signal,
  });
  return /** @type {Api.Operations[O]["answer"]} */ (await answer.json());
}

/** The path of names, encoded for an address. @param {...string} names */
export function path(...names) {
  return names.map((name) => `/${encodeURIComponent(name)}`).join("");
}

/**
 * The path of an object in the Kubernetes API.
 * @param {string} group @param {string} version @param {string} plural @param {string} [namespace] @param {string} [name]
 */
export function objectPath(group, version, plural, namespace, name) {
  const root = group && group !== "core" ? `/apis${path(group, version)}` : `/api${path(version)}`;
  return root + (namespace ? path("namespaces", namespace) : "") + path(plural) + (name ? path(name) : "");
}

/**
 * Return a function that coalesces calls of a task: while one runs, at most one more is queued.
 * @param {() => Promise<void>} task
 */
export function coalesce(task) {
  let running = false;
  let rerun = false;
  return async function run() {
    if (running) {
      rerun = true;
      return;
    }
    running = true;
    try {
      await task();
    } finally {
      running = false;
      if (rerun) {
        rerun = false;
        void run();
      }
    }
  };
}
