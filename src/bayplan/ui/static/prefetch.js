// A classic script that runs before the modules are loaded: it requests what the page shows first (service.js uses the
// responses). It also runs before anything is painted, so that no page flashes in the wrong colours. All later code can
// use the browser's storage without checking whether the browser blocks it.
(function () {
  // The browser may block storage; then values last only until the page is closed.
  /** @type {("localStorage" | "sessionStorage")[]} */ (["localStorage", "sessionStorage"]).forEach(function (name) {
    try {
      window[name].getItem("");
    } catch {
      /** @type {Map<string, string>} */
      var memory = new Map();
      Object.defineProperty(window, name, {
        value: {
          getItem: (/** @type {string} */ key) => memory.get(key) ?? null,
          setItem: (/** @type {string} */ key, /** @type {string} */ value) => void memory.set(key, value),
          removeItem: (/** @type {string} */ key) => void memory.delete(key),
        },
      });
    }
  });
  var chosen = localStorage.getItem("bayplan.theme");
  document.documentElement.dataset.rows = localStorage.getItem("bayplan.rows") || "normal";
  var token = sessionStorage.getItem("bayplan.token");
  // The active theme: the chosen one, or that of the system. Updated when either changes.
  var dark = matchMedia("(prefers-color-scheme: dark)");
  function show() {
    var theme = chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
    document.documentElement.dataset.theme = theme;
    dispatchEvent(new Event("themechange"));
  }
  show();
  dark.addEventListener("change", show);
  addEventListener("themechosen", function (event) {
    chosen = event.detail;
    show();
  });

  var place = location.pathname.replace(/^\/ui/, "").replace(/\/+$/, "") || "/";
  var query = new URLSearchParams(location.search);
  /** @type {string[]} */
  var urls = [];
  if (place === "/" || place === "/nodes") {
    urls.push("/overview");
    // Only a cluster of many nodes is drawn as cells, but how many there are is known only after this response.
    if (!query.get("metric") && !query.get("by")) urls.push("/nodes/cells?metric=cpu&by=zone");
  }
  if (place === "/pods") {
    var params = new URLSearchParams();
    ["q", "status", "reason", "namespace", "node", "priority", "workload", "sort"].forEach(function (name) {
      var value = query.get(name) || (name === "sort" ? "status" : "");
      if (value) params.set(name, value);
    });
    urls.push("/pods?" + params + "&offset=0&limit=100&facets=1");
  }
  var pod = /^\/pods\/[^/]+\/[^/]+$/.test(place);
  if (pod && !query.get("run")) urls.push(place);
  if (pod && !String(query)) urls.push(place + "/attempts/latest/matrix?form=columns&limit=10000");

  /** @type {Record<string, string>} */
  var headers = { Accept: "application/json" };
  if (token) headers.Authorization = "Bearer " + token;
  /** @type {Map<string, Promise<Response>>} */
  var responses = new Map();
  urls.forEach(function (address) {
    var answer = fetch("/bayplan/v1" + address, { headers: headers, cache: "no-cache" });
    // The caller that uses the response handles a failure; this handler is for unused responses.
    answer.catch(function () {});
    responses.set("/bayplan/v1" + address, answer);
  });
  window.prefetched = responses;
})();
