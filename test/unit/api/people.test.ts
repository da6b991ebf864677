import { afterEach, expect, test } from "vitest";
import { Failure } from "../../../src/errors.ts";
import { closePeers, serviceAnswering } from "./peer.ts";

afterEach(closePeers);

test("people search has a default parameter, which others replace", async () => {
  const { service, urls } = await serviceAnswering(200, { people: [{ id: 1 }] });
  await service.people.search({ text: "a&b" });
  await service.people.search({
    params: [
      ["q", "é"],
      ["q", "2"],
    ],
  });
  await service.people.membership("p/1");
  expect(urls()).toEqual([
    "GET /api/v1/people/search?query=a%26b",
    "GET /api/v1/people/search?q=%C3%A9&q=2",
    "GET /api/v1/people/p%2F1/membership",
  ]);
  await expect(service.people.search({})).rejects.toBeInstanceOf(Failure);
  await expect(service.people.search({ params: [["", "x"]] })).rejects.toBeInstanceOf(Failure);
});
