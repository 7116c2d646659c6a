// The round of the functions that orval made, in ./client_package/client, which use axios.
import axios from "axios";
import { getContentPipeline } from "./client_package/client";
import type { ErrorAnswer, RawItem } from "./client_package/client";

const {
  eventsList, generatedList, generatedPublish, generatedRestore, generatedRetrieve, generatedUpdate, getAnalytics,
  getWorkspace, outletsList, rawList, rawPush, sourcesCreate, sourcesRetrieve,
} = getContentPipeline();
const { URL: baseURL = "", STORY: body = "", TOKEN = "", POOR = "", UNKNOWN_ID = "", KIND } = process.env;
const by = (token: string, headers: Record<string, string> = {}) => ({
  baseURL,
  headers: { Authorization: `Bearer ${token}`, ...headers },
  proxy: false as const,
});
const code = async (answer: Promise<unknown>): Promise<string> => {
  try {
    await answer;
  } catch (error) {
    if (axios.isAxiosError<ErrorAnswer>(error) && error.response?.data.detail[0]?.message)
      return error.response.data.error;
    throw error;
  }
  throw new Error("it was answered well");
};

async function live() {
  const me = by(TOKEN);
  const source = (await sourcesCreate({ type: "webhook", name: "Bridge" }, me)).data;
  for (const number of [0, 1, 2])
    await rawPush({ title: `Story ${number}`, body, engines: ["Short Post"] }, me);
  const rows: RawItem[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = (await rawList({ limit: 2, cursor }, me)).data;
    rows.push(...page.data);
    if (page.next_cursor === null) break;
    cursor = page.next_cursor;
  }
  const find = async () =>
    (await generatedList({ include: "content", status: ["ready", "failed"] }, me)).data.data[0];
  let item = await find();
  while (!item) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    item = await find();
  }
  const id = item.id;
  const published = (await generatedPublish(id, {}, me)).data;
  if (!("publications" in published)) throw new Error("it was rehearsed");
  const analytics = (await getAnalytics(undefined, me)).data;
  const errors: Record<string, string> = {
    400: await code(generatedList({ cursor: "nonsense" }, me)),
    401: await code(getWorkspace(by("cpk_live_nonsense"))),
    402: await code(rawPush({ title: "Poor", body }, by(POOR))),
    404: await code(sourcesRetrieve(UNKNOWN_ID, me)),
    409: await code(generatedRestore(id, {}, me)),
    412: await code(generatedUpdate(id, { title: "New" }, by(TOKEN, { "If-Match": '"v9999"' }))),
  };
  errors[429] = await code(
    (async () => {
      for (;;) await getWorkspace(me);
    })(),
  );
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
  const outlets = (await outletsList(undefined, me)).data;
  const events = (await eventsList(undefined, me)).data;
  const source = (await sourcesRetrieve("src_01mtgcg400e008000000000001", me)).data;
  const item = (await generatedRetrieve("gen_01mtgcg400e008000000000001", me)).data;
  return {
    platform: outlets.data[0]?.platform,
    event: events.data[0]?.type,
    source: source.type,
    engine: item.engine_output,
    held: item.held,
    error: await code(getWorkspace(me)),
  };
}

console.log(JSON.stringify(await (KIND === "live" ? live() : unknown())));
