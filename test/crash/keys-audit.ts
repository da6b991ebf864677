// What must hold after a broken run of an access key's command, at once and once nothing is left to do.
import type { KeysDesk } from "../e2e/keys-desk.ts";
import { unsettledIn } from "../support/journal-file.ts";
import { journalOf, type Path, recoverAs, type Scene, type Stage, strayed } from "./keys-scenes.ts";

/** So long a list is not believed that a key is not there; recovery would wait for it at each run alone. */
export const settleMs = 16_000;

/** A run that was killed, or whose connection was cut. */
export interface Broken {
  readonly stage: Stage;
  /** Where it was, for messages. */
  readonly where: string;
  /** POSTs that the service met. */
  readonly posts: number;
}

/** @param given `wrong` takes what is not as it must be */
export async function auditAtOnce(
  desk: KeysDesk,
  scene: Scene,
  { stage, where, wrong }: Omit<Broken, "posts"> & { wrong: string[] },
): Promise<Broken> {
  const posts = await desk.sent("POST", scene.posts);
  const begun = journalOf(stage.at).filter(({ attempts }) => attempts > 0).length;
  if (posts > begun) wrong.push(`${where}: ${posts} POSTs, ${begun} in the journal`);
  for (const words of (await scene.atOnce?.(desk, stage)) ?? []) wrong.push(`${where}: at once: ${words}`);
  return { stage, where, posts };
}

/** Types what the program says until nothing is left, then looks. @returns the way it went */
export async function auditRecovered(
  desk: KeysDesk,
  scene: Scene,
  { stage, where, wrong }: Broken & { wrong: string[] },
): Promise<Path | "dead end"> {
  await desk.renew();
  const path = await recoverAs(desk, stage);
  if (path instanceof Error) wrong.push(`${where}: ${path.message}`);
  for (const { id, state } of unsettledIn(journalOf(stage.at))) wrong.push(`${where}: entry ${id} is still ${state}`);
  for (const words of await scene.inTheEnd(desk, stage)) wrong.push(`${where}: in the end: ${words}`);
  for (const file of strayed(stage.at)) wrong.push(`${where}: a secret stands in ${file}`);
  return path instanceof Error ? "dead end" : path;
}
