// Label a drawn sample with keys; read the precision of rules.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { count, exact, share, value, words } from "./format";
import { type Doc, type Params, type Run, type Stage, filtersOf, go, tell, useAnswer } from "./state";
import { Card, Fate, Table, Waiting } from "./ui";

const KEYS: Record<string, string> = { k: "keep", d: "drop", u: "unsure" };
type Interval = [number, number, number];
interface Score { rule: string; documents: number; keep: number; drop: number; unsure: number; precision?: Interval | null; recall?: Interval | null; missed?: Interval | null }

export function Judge({ run, params }: { run: Run; params: Params }) {
  const funnel = useAnswer<Stage[]>("funnel");
  const rules = (funnel.data ?? []).flatMap((s) => s.removed.map((r) => r.reason));
  const of = params.of ?? (run.kept ? "kept" : rules[0]);
  const seed = params.seed ?? "0", n = params.n ?? "50";
  const set = (change: Params) => go("judge", { ...filtersOf(params), of, seed, n, ...change });
  if (run.labels === null) return <p class="empty">Labels are written next to a local run; name a file with --labels.</p>;
  return (
    <>
      <Card title="Judge a sample" note={<>Labels go to <code>{run.labels}</code>; they say how right a rule is, and train models. {run.meanings[of]}</>}>
        <div class="controls">
          <label>Documents <select value={of} onChange={(e) => set({ of: e.currentTarget.value })}>
            {run.kept > 0 && <option value="kept">kept ones</option>}
            {(funnel.data ?? []).filter((s) => s.removed.length).map((s) => (
              <optgroup key={s.stage} label={s.stage}>{s.removed.map((r) => <option key={r.reason} value={r.reason}>{r.reason} · {count(r.documents)}</option>)}</optgroup>
            ))}
          </select></label>
          <label>How many <input type="number" min="1" max="500" value={n} onChange={(e) => set({ n: e.currentTarget.value })} /></label>
          <label>Seed <input type="number" value={seed} onChange={(e) => set({ seed: e.currentTarget.value })} /></label>
        </div>
      </Card>
      {of === undefined ? (funnel.data ? <p class="empty">This run has no document to judge.</p> : null) : <Sample key={`${of} ${seed} ${n}`} of={of} n={n} seed={seed} />}
    </>
  );
}

function Sample({ of, n, seed }: { of: string; n: string; seed: string }) {
  const asked = useAnswer<Doc[]>("sample", { of, n, seed });
  const before = useAnswer<Score[]>("scores");
  const [labels, setLabels] = useState<Record<number, string | null>>({});
  const [at, setAt] = useState<number | null>(null);
  const [scores, setScores] = useState<Score[]>();
  const [problem, setProblem] = useState<string>();
  const card = useRef<HTMLDivElement>(null);
  const sent = useRef(0);
  const docs = asked.data ?? [];
  const labelOf = (d: Doc) => (d.row in labels ? labels[d.row] : d.label) ?? null;
  const first = docs.findIndex((d) => labelOf(d) === null);
  const here = at ?? Math.max(0, first);
  const doc = docs[here];
  const label = (name: string) => {
    if (!doc) return;
    setLabels((old) => ({ ...old, [doc.row]: name }));
    const mine = ++sent.current; // answers may come in another order than labels were sent
    tell<Score[]>("label", { row: String(doc.row), of, label: name }).then(
      (s) => { if (mine === sent.current) { setScores(s); setProblem(undefined); } }, (e: Error) => setProblem(e.message));
    setAt(Math.min(here + 1, docs.length - 1));
    card.current?.querySelector(".prose")?.scrollTo(0, 0);
  };
  useLayoutEffect(() => { // with the page: a key that is pressed before would label the document before
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || ["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName)) return;
      if (KEYS[event.key]) { event.preventDefault(); label(KEYS[event.key]); }
      else if (event.key === "j" || event.key === "ArrowRight") setAt(Math.min(here + 1, docs.length - 1));
      else if (event.key === "ArrowLeft") setAt(Math.max(here - 1, 0));
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
  const done = docs.filter((d) => labelOf(d) !== null).length;
  return (
    <Waiting asked={asked} empty={(d) => d.length === 0}>
      {() => doc && (
        <>
          <div class="judging" ref={card}>
            <Card title={`${here + 1} of ${docs.length}`} note={`${count(done)} labelled`}>
              <p class="progress" aria-hidden="true">{docs.map((d, i) => <i key={d.row} class={`${labelOf(d) ?? ""} ${i === here ? "here" : ""}`} />)}</p>
              <h3><bdi>{doc.title || exact(doc.url || doc.id || "Untitled")}</bdi></h3>
              <p class="url"><bdi>{exact(doc.url)}</bdi></p>
              <p><Fate doc={doc} /> {(doc.value ?? doc.value_text) !== null && <>value {value(doc.reason, doc.value, doc.value_text)} · </>}{doc.language} · {count(doc.characters)} characters</p>
              <div class="buttons" role="group" aria-label="Label">
                {Object.entries(KEYS).map(([key, name]) => (
                  <button type="button" key={name} class={name} aria-pressed={labelOf(doc) === name} onClick={() => label(name)}>{words(name)} <kbd>{key}</kbd></button>
                ))}
                <button type="button" onClick={() => setAt(Math.max(here - 1, 0))} disabled={here === 0}>← previous</button>
                <button type="button" onClick={() => setAt(Math.min(here + 1, docs.length - 1))} disabled={here + 1 >= docs.length}>next →</button>
              </div>
              {problem && <p class="problem" role="alert">{problem}</p>}
              <div class="prose" lang={doc.language || undefined} dir="auto" tabIndex={0} role="region" aria-label="Text">{(doc.text ?? "").slice(0, 20000) || "no text"}</div>
            </Card>
          </div>
          <Scores rows={scores ?? before.data ?? []} />
        </>
      )}
    </Waiting>
  );
}

const interval = (found?: Interval | null) => found ? <>{share(found[0], 1)} <small>{share(found[1], 1)} – {share(found[2], 1)}</small></> : "–";

function Scores({ rows }: { rows: Score[] }) {
  return (
    <Card title="What the labels say" note="shares with 95 % intervals; recall takes labels of kept documents, too">
      {rows.length === 0 ? <p class="empty">No labels yet. Press k, d or u.</p> : (
        <Table caption="Precision and recall of rules">
          <thead><tr><th scope="col">Rule</th><th scope="col" class="n">Keep</th><th scope="col" class="n">Drop</th><th scope="col" class="n">Unsure</th><th scope="col" class="n">Precision</th><th scope="col" class="n">Recall</th></tr></thead>
          <tbody>{rows.map((r) => (
            <tr key={r.rule}><th scope="row">{r.rule === "kept" ? "kept (bad ones among them)" : r.rule}</th>
              <td class="n" data-label="Keep">{r.keep}</td><td class="n" data-label="Drop">{r.drop}</td><td class="n" data-label="Unsure">{r.unsure}</td>
              <td class="n" data-label="Precision">{interval(r.rule === "kept" ? r.missed : r.precision)}</td><td class="n" data-label="Recall">{interval(r.recall)}</td></tr>
          ))}</tbody>
        </Table>
      )}
    </Card>
  );
}
