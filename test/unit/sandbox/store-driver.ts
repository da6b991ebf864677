import { newState } from "../../../src/sandbox/seed.ts";
import { Store } from "../../../src/sandbox/store.ts";

const [folder, name] = process.argv.slice(2) as [string, string];

async function main(): Promise<void> {
  const store = new Store(folder, () => newState({ now: Date.now() }));
  for (let n = 0; n < 30; n++) {
    await store.change((state) => void state.contractVersions.push(`${name}${n}`));
    process.send!(`${name}${n}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  process.disconnect();
}

void main();
