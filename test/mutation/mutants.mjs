// The mutants of a source file: one small change of an operator, a condition, a literal, or a statement that is left out. All
// of them stand in one text, each behind a question that is true for one mutant at a time.
import { parseSync } from "rolldown/utils";

const negated = { "===": "!==", "!==": "===", "<": ">=", ">": "<=", "<=": ">", ">=": "<" };
const bounds = { "<": "<=", ">": ">=", "<=": "<", ">=": ">" };
const arithmetic = { "+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "&": "|", "|": "&" };
const logical = { "&&": "||", "||": "&&", "??": "&&" };
const methods = {
  some: "every",
  every: "some",
  min: "max",
  max: "min",
  startsWith: "endsWith",
  endsWith: "startsWith",
};

/** Sentences are for people: the golden errors and the words of the help hold them. */
function isSentence(text) {
  return /\S\s+\S/.test(text);
}

class Finder {
  sites = new Map();
  #text;
  /** Above the node that is looked at, the innermost last. */
  #above = [];

  constructor(text) {
    this.#text = text;
  }

  look(node) {
    if (node === null || typeof node !== "object") return;
    if (Array.isArray(node)) {
      for (const one of node) this.look(one);
      return;
    }
    if (typeof node.type !== "string" || /^TS(?!AsExpression|NonNull|Satisfies)|^Import|^Export(?:All)/.test(node.type))
      return;
    this.#mutate(node);
    this.#above.push(node);
    for (const [name, value] of Object.entries(node))
      if (value !== null && typeof value === "object" && !this.#isLeftOut(node, name)) this.look(value);
    this.#above.pop();
  }

  #isLeftOut(node, name) {
    if (name === "typeAnnotation" || name === "typeArguments" || name === "returnType" || name === "typeParameters")
      return true;
    return (node.type === "Property" || node.type.endsWith("Definition")) && name === "key" && !node.computed;
  }

  #add(node, kind, instead) {
    const site = this.sites.get(node) ?? [];
    site.push({ kind, instead, isStatic: !this.#above.some(({ type }) => /Function/.test(type)) });
    this.sites.set(node, site);
  }

  #of({ start, end }) {
    return this.#text.slice(start, end);
  }

  #mutate(node) {
    const { type } = node;
    if (type === "IfStatement" || type === "ConditionalExpression") {
      this.#add(node.test, "condition", "true");
      this.#add(node.test, "condition", "false");
    } else if (type === "WhileStatement" || type === "DoWhileStatement") this.#add(node.test, "condition", "false");
    else if (type === "ForStatement" && node.test) this.#add(node.test, "condition", "false");
    else if (type === "BinaryExpression") this.#binary(node);
    else if (type === "LogicalExpression") this.#operator(node, logical, "logical");
    else if (type === "UnaryExpression" && node.operator === "!") this.#add(node, "not", this.#of(node.argument));
    else if (type === "Literal") this.#literal(node);
    else if (type === "TemplateLiteral") this.#template(node);
    else if (type === "CallExpression") this.#call(node);
    else if (type === "ExpressionStatement") this.#statement(node);
    else if (type === "ThrowStatement") this.#add(node, "throw", "");
  }

  #binary(node) {
    this.#operator(node, negated, "comparison");
    this.#operator(node, bounds, "boundary");
    const isText = [node.left, node.right].some(
      ({ type, value }) => type === "TemplateLiteral" || typeof value === "string",
    );
    if (!isText) this.#operator(node, arithmetic, "arithmetic");
  }

  #operator(node, table, kind) {
    const other = table[node.operator];
    if (other === undefined || node.left.type === "PrivateIdentifier") return;
    const [left, right] = [this.#of(node.left), this.#of(node.right)];
    // `??` may not stand beside the others without parentheses.
    this.#add(node, kind, `(${left}) ${other} (${right})`);
  }

  #literal(node) {
    const above = this.#above.at(-1);
    if (above.type.startsWith("TS") && above.type !== "TSAsExpression") return;
    const { value } = node;
    if (typeof value === "boolean") this.#add(node, "boolean", String(!value));
    else if (typeof value === "number") this.#add(node, "number", value === 0 ? "1" : `(${this.#of(node)} + 1)`);
    else if (typeof value === "string" && !node.regex && above.type !== "ExpressionStatement" && !isSentence(value))
      this.#add(node, "text", value === "" ? '"mutant"' : '""');
  }

  #template(node) {
    if (this.#above.at(-1).type === "TaggedTemplateExpression") return;
    if (!isSentence(this.#of(node))) this.#add(node, "text", '""');
  }

  #call(node) {
    const { callee } = node;
    if (callee.type !== "MemberExpression" || callee.computed || node.optional || callee.optional) return;
    const isChained = this.#above.some(({ type }) => type === "ChainExpression");
    const { name } = callee.property;
    if (!Object.hasOwn(methods, name) || isChained) return;
    const other = methods[name];
    this.#add(node, "method", `${this.#of(callee.object)}.${other}${this.#text.slice(callee.property.end, node.end)}`);
  }

  #statement(node) {
    const { expression } = node;
    const inner = expression.type === "AwaitExpression" ? expression.argument : expression;
    if (inner.type === "CallExpression" && inner.callee.type === "Super") return;
    if (/^(?:Call|Assignment|Update|Unary|Chain)Expression$/.test(inner.type)) this.#add(node, "statement", "");
  }
}

/**
 * @param firstNumber of the file's first mutant
 * @returns the text with all mutants in it, and what each is
 */
export function mutantsOf(file, text, firstNumber) {
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  const finder = new Finder(text);
  finder.look(program.body);
  const nodes = [...finder.sites.keys()].toSorted((a, b) => a.start - b.start || b.end - a.end);
  const mutants = [];
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const placeOf = (at) => {
    const line = starts.findLastIndex((start) => start <= at);
    return { line: line + 1, column: at - starts[line] + 1 };
  };
  const without = (from, to) => {
    let written = "";
    let at = from;
    for (;;) {
      const node = nodes[0];
      if (node === undefined || node.start >= to) return written + text.slice(at, to);
      written += text.slice(at, node.start) + rendered(nodes.shift());
      at = node.end;
    }
  };
  const rendered = (node) => {
    const own = text.slice(node.start, node.end);
    const known = finder.sites.get(node).flatMap(({ kind, instead, isStatic }) => {
      if (instead.trim() === own.trim() || isStatic) return [];
      const number = firstNumber + mutants.length;
      mutants.push({ number, file, kind, ...placeOf(node.start), original: own, instead });
      return [{ number, instead }];
    });
    const inner = without(node.start, node.end);
    if (known.length === 0) return inner;
    if (node.type === "ThrowStatement" || node.type === "ExpressionStatement")
      return `{ if (!$m(${known[0].number})) ${inner} }`;
    return `(${known.map(({ number, instead }) => `$m(${number}) ? (${instead}) : `).join("")}(${inner}))`;
  };
  const whole = without(0, text.length);
  return { text: whole, mutants, left: [...finder.sites.values()].flat().filter(({ isStatic }) => isStatic).length };
}
