// Formatting of numbers and names for people. Only this module defines units, thousands separators and the dash for
// unknown values.

export const UNKNOWN = "–";
const THIN = "\u202f";
const COUNT = new Intl.NumberFormat("en-US");
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/** A count with thousands separators. @param {number | null | undefined} value */
export function count(value) {
  return value === null || value === undefined ? UNKNOWN : COUNT.format(value);
}

/** A count that may be only a lower bound; then `exact` is false. @param {number} value @param {boolean} [exact] */
export function bounded(value, exact = true) {
  return exact ? count(value) : `more than ${count(value)}`;
}

/** A count with its noun, as in "3 pods". @param {number} value @param {string} noun @param {string} [plural] */
export function counted(value, noun, plural = `${noun}s`) {
  return `${count(value)} ${value === 1 ? noun : plural}`;
}

/** Milli-CPU as CPUs. @param {number | null | undefined} milli */
export function cpu(milli) {
  if (milli === null || milli === undefined) return UNKNOWN;
  return short(milli / 1000);
}

/** Bytes in the largest binary unit that gives at least 1. @param {number | null | undefined} value */
export function bytes(value) {
  if (value === null || value === undefined) return UNKNOWN;
  let unit = 0;
  let rest = value;
  while (Math.abs(rest) >= 1024 && unit < BINARY.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  return `${short(rest)}${BINARY[unit]}`;
}

/** A number with at most two decimals: one from 10 on, none from 100 on. @param {number} value */
export function short(value) {
  const size = Math.abs(value);
  if (size >= 1000) return COUNT.format(Math.round(value));
  return String(Number(value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2)));
}

/** An amount of a resource, in its unit. @param {string} resource @param {number | null | undefined} value */
export function amount(resource, value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (resource === "cpu") return cpu(value);
  if (resource === "memory" || resource === "ephemeral-storage" || resource.startsWith("hugepages-"))
    return bytes(value);
  return count(value);
}

/** A share from 0 to 1, in percent. @param {number | null | undefined} share */
export function percent(share) {
  if (share === null || share === undefined) return UNKNOWN;
  const value = share * 100;
  return `${value > 0 && value < 1 ? "<1" : Math.round(value)}${THIN}%`;
}

/** A duration in seconds, in its largest one or two units. @param {number | null | undefined} seconds */
export function span(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return UNKNOWN;
  const whole = Math.max(0, seconds);
  if (whole < 10) return `${whole.toFixed(1)}${THIN}s`;
  if (whole < 120) return `${Math.round(whole)}${THIN}s`;
  if (whole < 5940) return `${Math.round(whole / 60)}${THIN}m`;
  if (whole < 172_800) return `${Math.round(whole / 3600)}${THIN}h`;
  return `${Math.round(whole / 86_400)}${THIN}d`;
}

/**
 * How long ago something happened, by the server's clock.
 * @param {string | null | undefined} at @param {number} now milliseconds
 */
export function age(at, now) {
  return at ? span(Math.max(0, now - Date.parse(at)) / 1000) : UNKNOWN;
}

/** The time of day of an instant. @param {string | null | undefined} at @param {boolean} [millis] */
export function time(at, millis = false) {
  if (!at) return UNKNOWN;
  const moment = new Date(at);
  if (Number.isNaN(moment.getTime())) return at;
  return moment.toISOString().slice(11, millis ? 23 : 19);
}

/**
 * A name that is too long, shortened in the middle: replicas often differ only at the end.
 * @param {string} name @param {number} [most]
 */
export function cut(name, most = 40) {
  if (name.length <= most) return name;
  const tail = Math.max(5, Math.floor(most / 3));
  return `${name.slice(0, most - tail - 1)}…${name.slice(-tail)}`;
}

/** A message of the scheduler without its first words, which are the same for all pods, for places where its end is cut. @param {string} message */
export function reasonsIn(message) {
  return message.replace(/^0\/\d+ nodes are available: /, "");
}

/** A phrase from the server as a sentence. @param {string} text */
export function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

/** The name of a plugin or a status, in which a line may break after each word. @param {string} name */
export function breakable(name) {
  return name
    .split(/(?<=[a-z])(?=[A-Z])/)
    .flatMap((word, at) => (at ? [document.createElement("wbr"), word] : [word]));
}

/** A number with its sign, and with a real minus sign. @param {number | null | undefined} value */
export function signed(value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (value === 0) return "0";
  return value > 0 ? `+${count(value)}` : `−${count(-value)}`;
}

/** The name of a resource for columns and buttons. @param {string} name */
export function resource(name) {
  const words = /** @type {Record<string, string>} */ ({
    cpu: "CPU",
    memory: "memory",
    pods: "pods",
    "nvidia.com/gpu": "GPU",
  });
  return words[name] ?? name;
}

/**
 * The first plugin whose results for a pod differ between two runs, in words.
 * @param {{ name: string, a: number | string | null, b: number | string | null }} first @param {string} a node in A @param {string} b node in B
 */
export function decidesOtherwise(first, a, b) {
  if (typeof first.a === "number" && typeof first.b === "number")
    return `${first.name} gives ${a} ${signed(first.a)} points over ${b} in A, ${signed(first.b)} in B`;
  const [side, node, text] = first.a === null ? ["B", a, first.b] : ["A", b, first.a];
  return `${first.name} rejects ${node} in ${side}: ${text}`;
}

/** The Kubernetes name of an extension point: pre_filter is PreFilter. @param {string} point */
export function pointName(point) {
  return point
    .split("_")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}

const SPECIAL_EVENTS = /** @type {Record<string, string>} */ ({
  "*": "any event",
  ForceActivate: "activation by a plugin",
  UnschedulableTimeout: "timeout for unschedulable pods",
});

/**
 * A cluster event in words: `NodeUpdateNodeTaint` is "node taint changed", `resource.k8s.io/DeviceClass` "DeviceClass changed".
 * @param {string} event
 */
export function eventWords(event) {
  const label = event.slice(event.lastIndexOf("/") + 1);
  if (SPECIAL_EVENTS[label]) return SPECIAL_EVENTS[label];
  const [, kind, action, property] = /^(?:Assigned|Unschedulable)?(Pod(?!Group)|Node)(Add|Delete|Update)?(?:Pod|Node)?(\w*)$/.exec(label) ?? [];
  if (!kind) {
    const [, other, past] = /^(\w+)(Add|Delete|Update)$/.exec(label) ?? ["", label, ""];
    return `${other} ${{ Add: "added", Delete: "deleted" }[past] ?? "changed"}`;
  }
  if (action === "Add" || action === "Delete") return `${kind.toLowerCase()} ${action === "Add" ? "added" : "deleted"}`;
  const words = property.replace(/([A-Z])/g, " $1").toLowerCase();
  return `${kind.toLowerCase()}${words} changed`;
}
