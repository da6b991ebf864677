import { scripts, shells } from "../../completion/scripts.ts";
import { defineVerb } from "../verb.ts";

export const command = defineVerb({
  configure: (command) =>
    command.addArgument(command.createArgument("<shell>", "Shell that reads the script").choices(shells)),
  examples: [
    {
      line: "echo 'source <(integ completion bash)' >> ~/.bashrc",
      does: "bash",
    },
    {
      line: "echo 'source <(integ completion zsh)' >> ~/.zshrc",
      does: "zsh; run autoload -U compinit && compinit first",
    },
    {
      line: "mkdir -p ~/.config/fish/completions && integ completion fish > ~/.config/fish/completions/integ.fish",
      does: "fish",
    },
    { line: "integ completion powershell | Out-String | Invoke-Expression", does: "PowerShell, from your profile" },
  ],
  more: "When you press Tab, the script asks integ for commands, flags, values, and the names of profiles, journal entries, clients and keys on this machine; nothing is sent.",
  async run({ output }, { args: [shell] }) {
    await output.text(scripts[shell]);
  },
});
