// What one file of the bundle gives to another, as plain properties. The bundler makes a getter of each, so that a variable
// that changes later is seen: hundreds of functions to make at a start, and a call wherever one is used.
import type { Plugin } from "rolldown";

const getter =
  /Object\.defineProperty\(exports, "([^"]+)", \{\s*enumerable: true,\s*get: function ?\(\) \{\s*return ([\w$]+);\s*\}\s*\}\);/g;

interface Node {
  readonly type: string;
  readonly name?: string;
}

/** A getter stays where the bundle assigns to a variable of that name, in whatever scope. */
export function plainExports(): Plugin {
  return {
    name: "plain-exports",
    renderChunk(code) {
      const changing = assignedNames(this.parse(code));
      return code.replaceAll(getter, (whole, name: string, variable: string) =>
        changing.has(variable) ? whole : `exports[${JSON.stringify(name)}] = ${variable};`,
      );
    },
  };
}

function assignedNames(program: object): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (node: unknown, isTarget: boolean): void => {
    if (typeof node !== "object" || node === null) return;
    if (Array.isArray(node)) return node.forEach((one) => visit(one, isTarget));
    const { type, name } = node as Node;
    if (isTarget && type === "Identifier" && name !== undefined) names.add(name);
    // `a.b = c` changes no variable.
    const isPattern = isTarget && type !== "MemberExpression";
    for (const [key, value] of Object.entries(node)) visit(value, isPattern || key === targetOf[type]);
  };
  visit(program, false);
  return names;
}

/** Which part of a node is assigned to. */
const targetOf: Readonly<Record<string, string>> = {
  AssignmentExpression: "left",
  UpdateExpression: "argument",
  ForInStatement: "left",
  ForOfStatement: "left",
};
