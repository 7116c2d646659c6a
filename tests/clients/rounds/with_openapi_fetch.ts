// The round of openapi-fetch with the types that openapi-typescript made, in ./client_package/schema.
import createClient from "openapi-fetch";
import type { components, paths } from "./client_package/schema";

const { URL: baseUrl = "", STORY: body = "", TOKEN = "", POOR = "", UNKNOWN_ID = "", KIND } = process.env;
const by = (token: string) => createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
const code = (answer: { error?: components["schemas"]["ErrorAnswer"] }): string => {
  if (!answer.error?.detail[0]?.message) throw new Error(JSON.stringify(answer.error));
  return answer.error.error;
};
const need = <T>(value: T | undefined | null): T => {
  if (value === undefined || value === null) throw new Error("nothing was answered");
  return value;
};

async function live() {
  const me = by(TOKEN);
  const source = need((await me.POST("/v1/sources", { body: { type: "webhook", name: "Bridge" } })).data);
  for (const number of [0, 1, 2])
    need((await me.POST("/v1/raw", { body: { title: `Story ${number}`, body, engines: ["Short Post"] } })).data);
  const rows: components["schemas"]["RawItem"][] = [];
  for (let cursor: string | undefined; ; ) {
    const page = need((await me.GET("/v1/raw", { params: { query: { limit: 2, cursor } } })).data);
    rows.push(...page.data);
    if (page.next_cursor === null) break;
    cursor = page.next_cursor;
  }
  const query = { include: "content", status: ["ready" as const, "failed" as const] };
  const find = async () => need((await me.GET("/v1/generated", { params: { query } })).data).data[0];
  let item = await find();
  while (!item) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    item = await find();
  }
  const path = { id: item.id };
  const published = need((await me.POST("/v1/generated/{id}/publish", { params: { path }, body: {} })).data);
  if (!("publications" in published)) throw new Error("it was rehearsed");
  const analytics = need((await me.GET("/v1/analytics")).data);
  const changes = { params: { path, header: { "If-Match": '"v9999"' } }, body: { title: "New" } };
  const errors: Record<string, string> = {
    400: code(await me.GET("/v1/generated", { params: { query: { cursor: "nonsense" } } })),
    401: code(await by("cpk_live_nonsense").GET("/v1/workspace")),
    402: code(await by(POOR).POST("/v1/raw", { body: { title: "Poor", body } })),
    404: code(await me.GET("/v1/sources/{id}", { params: { path: { id: UNKNOWN_ID } } })),
    409: code(await me.POST("/v1/generated/{id}/restore", { params: { path }, body: {} })),
    412: code(await me.PATCH("/v1/generated/{id}", changes)),
  };
  let last = await me.GET("/v1/workspace");
  while (last.data) last = await me.GET("/v1/workspace");
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
  const outlets = need((await me.GET("/v1/outlets")).data);
  const events = need((await me.GET("/v1/events")).data);
  const source = need((await me.GET("/v1/sources/{id}", { params: { path: { id: "src_01mtgcg400e008000000000001" } } })).data);
  const item = need((await me.GET("/v1/generated/{id}", { params: { path: { id: "gen_01mtgcg400e008000000000001" } } })).data);
  return {
    platform: need(outlets.data[0]).platform,
    event: need(events.data[0]).type,
    source: source.type,
    engine: item.engine_output,
    held: item.held,
    error: code(await me.GET("/v1/workspace")),
  };
}

console.log(JSON.stringify(await (KIND === "live" ? live() : unknown())));
