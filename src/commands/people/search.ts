import { Failure, invalidValue } from "../../errors.ts";
import { printRows, read } from "../running/read.ts";
import { defineVerb } from "../verb.ts";
import { quotedWord, shell } from "../../next-step.ts";

export const command = defineVerb({
  isPaged: true,
  configure: (command) =>
    command
      .argument("[text]", "Text to search for; sent as query=<text>")
      .option("--param <name=value...>", "Send this parameter instead of query; repeatable"),
  examples: [
    { line: "integ people search ada", does: "people whose name or e-mail address contains the text" },
    { line: "integ people search --param email=ada@example.com", does: "a parameter of your choice instead" },
    { line: "integ people search ada --json | jq '.data[].id'", does: "for a script" },
  ],
  more: "The API document names the search but not its parameters or rows: integ assumes `query` and prints the rows unchanged.",
  async run(context, { args: [text], options }) {
    const params = (options.param ?? []).map(pairOf);
    if (params.length > 0 && text !== undefined && !params.some(([, value]) => value === text))
      throw new Failure("usage", `"${text}" would not be sent: --param replaces it.`, {
        hint: `Leave the text out, or send it under a name: --param <name>=${quotedWord(text)}.`,
      });
    if (params.length === 0 && (text ?? "").trim() === "")
      throw new Failure("usage", "The search text is empty.", { nextCommand: shell`integ help people search` });
    const service = await context.connect();
    const { value } = await read(context, "search people", () => service.people.search({ text, params }));
    await printRows(context, value, { columns: [], singular: "person", plural: "people" });
  },
});

function pairOf(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  throw invalidValue("--param", text, {
    why: "it is not name=value",
    hint: "Write it like --param email=ada@example.com.",
  });
}
