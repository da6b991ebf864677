import { expect, it } from "vitest";
import { type StoreScheme, storeKinds } from "../../src/secrets/destination.ts";
import { isFull } from "../support/sample.ts";
import { absentStores, StoreWorld } from "../support/store-world.ts";
import { Session } from "./session.ts";

const absent = absentStores();
const world = new StoreWorld();

const schemes = Object.keys(storeKinds) as StoreScheme[];
const down = "\u001b[B";
/** In the list, the stores come after file and command. */
const keysFor = (scheme: StoreScheme): string => `${down.repeat(2 + schemes.indexOf(scheme))}\r`;

async function answerWith(scheme: StoreScheme, address: string): Promise<Session> {
  const words = `oauth-clients create --service-account ${world.service.us.service_account_id} --scope entity:read --new`;
  const dialog = new Session(words.split(" "), { home: world.at });
  await dialog.answer(/Where does the secret go\?[^]*screen/, keysFor(scheme));
  await dialog.answer(new RegExp(`Address \\(${scheme}:`), `${address}\r`);
  return dialog;
}

it.for(schemes)("%s: receives the secret, which the screen never shows", async (scheme, { skip }) => {
  skip(absent[scheme], "the store is missing");
  const store = await world.open(scheme);
  const { address } = store;
  try {
    const dialog = await answerWith(scheme, address);
    expect(await dialog.ended, dialog.written).toBe(0);
    const secret = store.secretAt(address) ?? "";
    const [client] = await world.account.live();
    expect(await world.account.opens(client!.client_id!, secret)).toBe(true);
    expect(dialog.written).not.toContain(secret);
    expect(dialog.written).toContain(`${scheme}:${address}`);
  } finally {
    await store.close();
    await world.account.clear();
  }
});

it.each(isFull ? schemes : schemes.slice(0, 1))(
  "%s: an invalid address ends the command, and nothing is sent",
  async (scheme) => {
    const before = (await world.account.creations()).length;
    const dialog = await answerWith(scheme, "none");
    expect(await dialog.ended, dialog.written).toBe(2);
    expect(dialog.written).toContain(`is not ${scheme}:`);
    expect((await world.account.creations()).length).toBe(before);
  },
);
