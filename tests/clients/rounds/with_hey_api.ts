// The round of a client that @hey-api/openapi-ts made, in ./client_package.
import { client } from "./client_package/client.gen";
import {
  eventsList, generatedList, generatedPublish, generatedRestore, generatedRetrieve, generatedUpdate, getAnalytics,
  getWorkspace, outletsList, rawList, rawPush, sourcesCreate, sourcesRetrieve,
} from "./client_package/sdk.gen";
import type { ErrorAnswer, RawItem } from "./client_package/types.gen";

const { URL: baseUrl = "", STORY: body = "", TOKEN = "", POOR = "", UNKNOWN_ID = "", KIND } = process.env;
client.setConfig({ baseUrl });
const by = (auth: string) => ({ auth });
const code = (answer: { error?: ErrorAnswer }): string => {
  if (!answer.error?.detail[0]?.message) throw new Error(JSON.stringify(answer.error));
  return answer.error.error;
};
const need = <T>(value: T | undefined | null): T => {
  if (value === undefined || value === null) throw new Error("nothing was answered");
  return value;
};

async function live() {
  const me = by(TOKEN);
  const source = need((await sourcesCreate({ ...me, body: { type: "webhook", name: "Bridge" } })).data);
  for (const number of [0, 1, 2])
    need((await rawPush({ ...me, body: { title: `Story ${number}`, body, engines: ["Short Post"] } })).data);
  const rows: RawItem[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = need((await rawList({ ...me, query: { limit: 2, cursor } })).data);
    rows.push(...page.data);
    if (page.next_cursor === null) break;
    cursor = page.next_cursor;
  }
  const find = async () =>
    need((await generatedList({ ...me, query: { include: "content", status: ["ready", "failed"] } })).data).data[0];
  let item = await find();
  while (!item) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    item = await find();
  }
  const path = { id: item.id };
  const published = need((await generatedPublish({ ...me, path, body: {} })).data);
  if (!("publications" in published)) throw new Error("it was rehearsed");
  const analytics = need((await getAnalytics({ ...me })).data);
  const errors: Record<string, string> = {
    400: code(await generatedList({ ...me, query: { cursor: "nonsense" } })),
    401: code(await getWorkspace(by("cpk_live_nonsense"))),
    402: code(await rawPush({ ...by(POOR), body: { title: "Poor", body } })),
    404: code(await sourcesRetrieve({ ...me, path: { id: UNKNOWN_ID } })),
    409: code(await generatedRestore({ ...me, path, body: {} })),
    412: code(await generatedUpdate({ ...me, path, headers: { "If-Match": '"v9999"' }, body: { title: "New" } })),
  };
  let last = await getWorkspace(me);
  while (last.data) last = await getWorkspace(me);
  errors[429] = code(last);
  return {
    source: source.type,
    rows: new Set(rows.map((row) => row.id)).size,
    parts: item.content && "parts" in item.content ? (item.content.parts as string[]).length : 0,
    publications: published.publications.length,
    metrics: "published" in analytics.totals.metrics,
    errors,
  };
}

async function unknown() {
  const me = by("cpk_live_any");
  const outlets = need((await outletsList(me)).data);
  const events = need((await eventsList(me)).data);
  const source = need((await sourcesRetrieve({ ...me, path: { id: "src_01mtgcg400e008000000000001" } })).data);
  const item = need((await generatedRetrieve({ ...me, path: { id: "gen_01mtgcg400e008000000000001" } })).data);
  return {
    platform: need(outlets.data[0]).platform,
    event: need(events.data[0]).type,
    source: source.type,
    engine: item.engine_output,
    held: item.held,
    error: code(await getWorkspace(me)),
  };
}

console.log(JSON.stringify(await (KIND === "live" ? live() : unknown())));
