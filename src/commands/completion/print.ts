// Owns: `integ completion`.
import type { Tree } from "../../completion/tree.ts";
import { defineVerb, type Verb, type WholeTree } from "../verb.ts";

const shells = ["bash", "zsh", "fish", "powershell"] as const;
type Shell = (typeof shells)[number];

/** @param wholeTree the tree that the script completes; asked for when the command runs */
export function over(wholeTree: () => Promise<WholeTree>): { command: Verb } {
  const command = defineVerb({
    configure: (command) =>
      command.addArgument(command.createArgument("<shell>", "the shell that will read the script").choices(shells)),
    examples: [
      {
        line: "echo 'source <(integ completion bash)' >> ~/.bashrc",
        does: "bash",
      },
      {
        line: "echo 'source <(integ completion zsh)' >> ~/.zshrc",
        does: "zsh; its completion must be on before: autoload -U compinit && compinit",
      },
      {
        line: "mkdir -p ~/.config/fish/completions && integ completion fish > ~/.config/fish/completions/integ.fish",
        does: "fish",
      },
      { line: "integ completion powershell | Out-String | Invoke-Expression", does: "PowerShell, from your profile" },
    ],
    more: "Commands, flags and known values are in the script. Names of profiles, journal entries, clients and keys are read from this machine when Tab is pressed; nothing is sent.",
    async run(context, { args: [shell] }) {
      const { treeOf } = await import("../../completion/tree.ts");
      const { root, verbOf } = await wholeTree();
      const scriptOf = await scripts[shell]();
      await context.output.text(scriptOf(treeOf(root, verbOf)));
    },
  });
  return { command };
}

/** Only the script that was asked for is loaded. */
const scripts: Readonly<Record<Shell, () => Promise<(tree: Tree) => string>>> = {
  bash: async () => (await import("../../completion/bash.ts")).bashScript,
  zsh: async () => (await import("../../completion/zsh.ts")).zshScript,
  fish: async () => (await import("../../completion/fish.ts")).fishScript,
  powershell: async () => (await import("../../completion/powershell.ts")).powershellScript,
};
