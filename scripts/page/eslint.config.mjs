// The rules of the page's modules. Types are checked by TypeScript's compiler (tsconfig.json); these are about the shape of the code.

import js from "@eslint/js";

const LONGEST_FUNCTION = 70;
const LONGEST_FILE = 500;
const TYPE = /@(?:type|param|returns|typedef|template|this|satisfies|property|extends)\s*\{/g;

/** The text of a type in braces, which may hold braces itself. */
function typeAt(text, start) {
  let depth = 1;
  let end = start;
  while (depth && end < text.length) {
    depth += { "{": 1, "}": -1 }[text[end]] ?? 0;
    end += 1;
  }
  return text.slice(start, end - 1);
}

/** No type is any, and no comment turns the checker off: what is not known is `unknown`. */
const noAny = {
  create: (context) => ({
    Program() {
      for (const comment of context.sourceCode.getAllComments()) {
        if (/@ts-(?:ignore|expect-error|nocheck)/.test(comment.value))
          context.report({ loc: comment.loc, message: "The type checker may not be turned off." });
        for (const found of comment.value.matchAll(TYPE)) {
          const type = typeAt(comment.value, found.index + found[0].length);
          if (/\bany\b|^\*$|\bFunction\b|\bObject\b/.test(type))
            context.report({ loc: comment.loc, message: `The type '${type}' says nothing; say unknown, or what it is.` });
        }
      }
    },
  }),
};

export default [
  js.configs.recommended,
  {
    plugins: { bayplan: { rules: { "no-any": noAny } } },
    linterOptions: { reportUnusedDisableDirectives: "error", noInlineConfig: true },
    rules: {
      "bayplan/no-any": "error",
      "no-undef": "off", // The type checker knows better what there is.
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "max-lines-per-function": ["error", { max: LONGEST_FUNCTION }],
      "max-lines": ["error", LONGEST_FILE],
      "consistent-return": "off", // noImplicitReturns of the type checker.
      eqeqeq: "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-shadow-restricted-names": "error",
      "no-throw-literal": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
    },
  },
  // A classic script that runs before the modules, in browsers of any age.
  { files: ["**/prefetch.js"], languageOptions: { sourceType: "script" }, rules: { "no-var": "off", "object-shorthand": "off" } },
  { ignores: ["**/prefetch.js"], rules: { "no-var": "error" } },
];
