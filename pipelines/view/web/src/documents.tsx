// Find documents.
import { useEffect, useState } from "preact/hooks";
import { count, plural } from "./format";
import { type Doc, type Params, ask, filtersOf, go, useAnswer } from "./state";
import { COLUMNS, DocTable, Pager, Waiting } from "./ui";

const PAGE = 50;

export function Documents({ params }: { params: Params }) {
  const [wanted, setWanted] = useState(params.q ?? "");
  useEffect(() => setWanted(params.q ?? ""), [params.q]);
  const inText = params.in === "text";
  const search = (event: Event) => {
    event.preventDefault();
    go("documents", { ...filtersOf(params), q: wanted.trim(), in: params.in ?? "" });
  };
  return (
    <>
      <form class="search" role="search" onSubmit={search}>
        <input type="search" aria-label="Search documents" placeholder={inText ? "Words in the text" : "URL, host or id"} value={wanted} onInput={(e) => setWanted(e.currentTarget.value)} />
        <select aria-label="Search in" value={params.in ?? ""} onChange={(e) => go("documents", { ...params, q: wanted.trim(), in: e.currentTarget.value, first: "" })}>
          <option value="">in URLs and ids</option>
          <option value="text">in texts</option>
        </select>
        <button type="submit" class="primary">Search</button>
      </form>
      {inText && params.q ? <InTexts params={params} /> : <Listed params={params} />}
    </>
  );
}

function Listed({ params }: { params: Params }) {
  const first = Number(params.first ?? 0) || 0;
  const q = params.in === "text" ? "" : (params.q ?? "");
  const asked = useAnswer<{ all: number; rows: Doc[] }>("documents", {
    ...filtersOf(params), q, sort: params.sort ?? "", down: params.down ?? "", first: String(first), most: String(PAGE),
  });
  const sort = (key: string) => go("documents", { ...params, sort: key, down: params.sort === key && params.down !== "1" ? "1" : params.sort === key ? "" : ["characters", "tokens", "date"].includes(key) ? "1" : "", first: "" });
  return (
    <Waiting asked={asked} empty={(found) => found.all === 0}>
      {(found) => (
        <>
          <p class="note" role="status">{plural(found.all, "document")}</p>
          <div class="phone"><label class="phone">Order by <select value={params.sort ?? ""} onChange={(e) => sort(e.currentTarget.value)}>
            <option value="">kept first</option>
            {COLUMNS.filter((c) => c.sortable).map((c) => <option key={c.key} value={c.key}>{c.label}</option>)}
          </select></label>
          {params.sort && <button type="button" onClick={() => sort(params.sort)}>{params.down === "1" ? "largest first" : "smallest first"}</button>}</div>
          <DocTable caption="Documents" rows={found.rows} params={params} sort={params.sort} down={params.down === "1"} onSort={sort} />
          <Pager first={first} page={PAGE} all={found.all} go={(to) => go("documents", { ...params, first: to ? String(to) : "" })} />
        </>
      )}
    </Waiting>
  );
}

interface Texts { rows: Doc[]; next: number | null; files: number }

/** Texts are read file by file; what is found appears while the rest is searched. */
function InTexts({ params }: { params: Params }) {
  const [rows, setRows] = useState<Doc[]>([]);
  const [next, setNext] = useState<number | null>(0);
  const [going, setGoing] = useState(true);
  const [problem, setProblem] = useState<string>();
  const [files, setFiles] = useState(0);
  const key = JSON.stringify([params.q, filtersOf(params)]);
  useEffect(() => { setRows([]); setNext(0); setGoing(true); setProblem(undefined); }, [key]);
  useEffect(() => {
    if (next === null || !going) return;
    const abort = new AbortController();
    ask<Texts>("text", { ...filtersOf(params), q: params.q, start: String(next), most: "100" }, abort.signal).then(
      (found) => {
        const enough = (next ? rows.length : 0) + found.rows.length >= 200;
        setRows((old) => (next ? [...old, ...found.rows] : found.rows));
        setFiles(found.files);
        setNext(found.next);
        if (enough) setGoing(false);
      },
      (error: Error) => { if (error.name !== "AbortError") { setProblem(error.message); setGoing(false); } },
    );
    return () => abort.abort();
  }, [key, next, going]);
  const busy = going && next !== null;
  return (
    <>
      {problem && <p class="problem" role="alert">{problem}</p>}
      <p class="note" role="status">
        {count(rows.length)} found{next === null ? "" : `, ${next} of ${files || "…"} files searched`}{" "}
        {busy && <button type="button" onClick={() => setGoing(false)}>Stop</button>}
        {!busy && next !== null && !problem && <button type="button" onClick={() => setGoing(true)}>Continue</button>}
      </p>
      {rows.length > 0 && <DocTable caption="Documents with these words" rows={rows} params={params} />}
      {!busy && !rows.length && !problem && <p class="empty">No text has these words under these filters.</p>}
    </>
  );
}
