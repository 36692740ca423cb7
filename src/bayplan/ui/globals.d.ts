// What the page adds to the browser's types: the answers that early.js has asked for, and JSON whose shape nobody has checked yet.

interface Window {
  earlyAnswers?: Map<string, Promise<Response>>;
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
