// Plugins: which are there, at which extension points do they run, and what failed in them?

import { h } from "../dom.js";
import { breakable, count, counted, pointName, time } from "../format.js";
import { to } from "../address.js";
import { get } from "../service.js";
import { onReload } from "../stream.js";
import { badge, copyMenu, tableHead } from "../parts.js";
import { onPluginsReloaded, refusalNote, refusalSentence, reloadButton } from "../plugin_reload.js";
import { loadPanel } from "../loading_states.js";
import { title } from "../shell.js";

/** The columns of the table of plugins: title and class. @type {[string, string][]} */
const COLUMNS = [
  ["Plugin", ""],
  ["Extension points", ""],
  ["Enabled", ""],
  ["Source", "minor"],
  ["Failures", "right minor"],
  ["Documentation", "minor"],
];

/** @param {import("../main.js").Page} page */
export function open({ root, signal }) {
  title("Plugins");
  const body = h("div", { class: "stack" });
  root.append(body);
  /** @type {() => Promise<void>} */
  const load = loadPanel(
    body,
    async () => ({ items: (await get("/plugins", {}, signal)).items, refused: refusalSentence() }),
    (data) => parts(data.items, data.refused),
    { signal, lines: 10, failed: () => [h("h1", { class: "verdict" }, "Plugins can't be shown")] },
  );
  void load();
  onReload(load, signal);
  onPluginsReloaded(load, signal);
  const timer = setInterval(() => {
    if (!document.hidden) void load();
  }, 3000);
  signal.addEventListener("abort", () => clearInterval(timer));
}

/** @param {Api.PluginRow[]} plugins @param {string} refused a sentence that plugin files were refused, or "" */
function parts(plugins, refused) {
  const failed = plugins.filter((plugin) => plugin.failures.length);
  const custom = plugins.filter((plugin) => plugin.file);
  // Plugins from files first: the user may be working on them.
  const ordered = [...custom, ...plugins.filter((plugin) => !plugin.file)];
  const words =
    refused ||
    (failed.length
      ? `${counted(failed.length, "plugin")} failed: ${failed.map((plugin) => plugin.name).join(", ")}`
      : `${counted(plugins.length, "plugin")}${custom.length ? `, ${count(custom.length)} from files` : ""}; none failed`);
  return [
    h("p", { class: "crumbs" }, h("a", { href: to("config") }, "Configuration"), " / Plugins"),
    h(
      "div",
      { class: "head" },
      h("h1", { class: "verdict", "data-test": "verdict" }, words),
      reloadButton(),
      copyMenu({ json: "/bayplan/v1/plugins" }),
    ),
    refusalNote(),
    ...failed.map(failurePanel),
    h(
      "table",
      { class: "list panel wide", "data-test": "plugins" },
      tableHead(COLUMNS),
      h("tbody", null, ordered.map(pluginRow)),
    ),
  ];
}

/** @param {Api.PluginRow} plugin */
function failurePanel({ name, failures }) {
  return h(
    "section",
    { class: "panel", key: `failed ${name}` },
    h("div", { class: "row" }, h("h2", { class: "grow" }, name), badge("error", "failed")),
    failures.slice(-5).map((failure, at) =>
      h(
        "details",
        { key: at, open: at === failures.length - 1 || null },
        h(
          "summary",
          null,
          `${time(failure.at)} ${failure.point}: `,
          h("span", { class: "bad-text" }, failure.exception),
          failure.count > 1 ? ` (${count(failure.count)} times)` : "",
        ),
        h("pre", { class: "code short", tabindex: 0 }, failure.traceback || failure.exception),
      ),
    ),
  );
}

/** Whether profiles run a plugin at all, some or none of its extension points. @param {Api.PluginRow} plugin */
function enabled({ enabled: at, points }) {
  if (!at.length) return "no";
  return points.every((point) => at.includes(point)) ? "yes" : at.map(pointName).join(", ");
}

/** @param {Api.PluginRow} plugin */
function pluginRow(plugin) {
  return h(
    "tr",
    { key: plugin.name },
    h("th", { scope: "row" }, breakable(plugin.name)),
    h("td", { class: "wrap" }, plugin.points.map(pointName).join(", ")),
    h("td", { class: plugin.enabled.length ? "" : "faint" }, enabled(plugin)),
    plugin.file
      ? h("td", { class: "wrap name minor" }, plugin.file)
      : h("td", { class: "faint minor" }, plugin.built_in ? "built in" : "installed"),
    h(
      "td",
      { class: `right figure minor${plugin.failures.length ? " bad-text" : " faint"}` },
      plugin.failures.length ? count(plugin.failures.length) : "–",
    ),
    h(
      "td",
      { class: "minor" },
      plugin.documentation
        ? h("a", { href: plugin.documentation, rel: "noopener noreferrer", target: "_blank" }, `${plugin.name} in Kubernetes`)
        : "–",
    ),
  );
}
