export const helpTopics = {
  options: "Options that every command takes",
  output: "Formats, fields and streams",
  "exit-codes": "What each exit code means",
  environment: "Environment variables",
  states: "States of a change in the journal",
  secrets: "Destinations of a one-time secret",
} as const;

export type HelpTopic = keyof typeof helpTopics;

export function isHelpTopic(word: string | undefined): word is HelpTopic {
  return word !== undefined && Object.hasOwn(helpTopics, word);
}
