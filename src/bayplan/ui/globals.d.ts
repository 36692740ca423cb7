// What the page adds to the browser's types: the answers that prefetch.js requested, and JSON whose shape nobody has checked yet.

interface Window {
  prefetched?: Map<string, Promise<Response>>;
}

interface Body {
  json(): Promise<unknown>;
}

interface JSON {
  parse(text: string): unknown;
}

interface WindowEventMap {
  themechosen: CustomEvent<string>;
}
