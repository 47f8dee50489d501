// The funnel as a picture, and what is in it.
import { useState } from "preact/hooks";
import { about, compact, count, share } from "./format";
import { type Params, type Run, type Stage, type Values, filtersOf, go, link, toggled, useAnswer } from "./state";
import { Card, Facet, Figure, Waiting } from "./ui";

const TITLES: Record<string, string> = {
  language: "Languages", domain: "Domains", topic: "Topics", format: "Formats", host: "Hosts", input: "Inputs", year: "Years",
};

const UNITS = ["documents", "characters", "tokens"] as const;
type Unit = typeof UNITS[number];
/** A stage in one unit. */
interface Flow { stage: string; into: number; gone: number; removed: { reason: string; size: number }[] }

function flowOf(s: Stage, unit: Unit, perCharacter: number): Flow {
  if (unit === "documents") return { stage: s.stage, into: s.documents_in, gone: s.documents_removed, removed: s.removed.map((r) => ({ reason: r.reason, size: r.documents })) };
  const size = (characters: number) => (unit === "tokens" ? Math.round(characters * perCharacter) : characters);
  const removed = s.removed.map((r) => ({ reason: r.reason, size: size(r.characters) })).sort((a, b) => b.size - a.size);
  return { stage: s.stage, into: size(s.characters_in), gone: size(s.characters_removed), removed };
}

export function Funnel({ run, params }: { run: Run; params: Params }) {
  const filters = filtersOf(params);
  const units = UNITS.filter((u) => u !== "tokens" || run.tokens_per_character !== null);
  const unit = units.find((u) => u === params.unit) ?? "documents";
  const funnel = useAnswer<Stage[]>("funnel", filters);
  const values = useAnswer<Values>("values", { ...filters, most: "8" });
  return (
    <>
      <Waiting asked={funnel}>
        {(stages) => (
          <>
            <Totals stages={stages} run={run} filtered={Object.keys(filters).length > 0} />
            {stages[0].documents_in === 0 && !Object.keys(filters).length ? <NoDocument run={run} /> : (
              <Card title="From records to training data" class="wide">
                <div class="units" role="group" aria-label="Unit">
                  {units.map((u) => <button type="button" key={u} aria-pressed={u === unit} onClick={() => go("funnel", { ...filters, unit: u === "documents" ? "" : u })}>{u}</button>)}
                </div>
                <p class="legend"><span><i class="kept" /> kept</span><span><i class="removed" /> removed</span>
                  {unit !== "documents" && <span class="note">Characters of the texts as the documents ended{unit === "tokens" && `; tokens are estimated, ${run.tokens_per_character!.toFixed(3)} a character as this run’s tokenizer counted`}.</span>}</p>
                <Picture flows={stages.map((s) => flowOf(s, unit, run.tokens_per_character ?? 0))} unit={unit} params={params} />
                <Steps flows={stages.map((s) => flowOf(s, unit, run.tokens_per_character ?? 0))} unit={unit} run={run} params={params} />
              </Card>
            )}
          </>
        )}
      </Waiting>
      <Waiting asked={values}>
        {(found) => (
          <div class="facets">
            {run.dimensions.filter((name) => params[name] || found[name].all < run.documents).map((name) => (
              <Facet key={name} title={TITLES[name] ?? name} name={name} view="funnel" params={params}
                values={found[name].values} all={found[name].all} />
            ))}
          </div>
        )}
      </Waiting>
    </>
  );
}

function NoDocument({ run }: { run: Run }) {
  return (
    <Card title="No document">
      <p>{run.records ? `${count(run.records)} records were read, and none of them is a document.` : "The inputs have no record."} <a href={link("errors", {})}>What became of them</a></p>
    </Card>
  );
}

function Totals({ stages, run, filtered }: { stages: Stage[]; run: Run; filtered: boolean }) {
  const first = stages[0];
  const last = stages[stages.length - 1];
  const kept = last.documents_in - last.documents_removed;
  const characters = last.characters_in - last.characters_removed;
  return (
    <dl class="figures">
      <Figure label="Documents">{count(first.documents_in)}</Figure>
      <Figure label="Kept" kind="kept">{count(kept)} <small>{share(kept, first.documents_in)}</small></Figure>
      <Figure label="Removed" kind="removed">{count(first.documents_in - kept)} <small>{share(first.documents_in - kept, first.documents_in)}</small></Figure>
      <Figure label="Characters kept">{compact(characters)} <small>of {compact(first.characters_in)}</small></Figure>
      {!filtered && run.distinct_tokens !== null && <Figure label="Distinct tokens">{compact(run.distinct_tokens)}</Figure>}
      {!filtered && run.epochs !== null && <Figure label="Epochs">{run.epochs.toFixed(2)}</Figure>}
      {!filtered && run.tokens !== null && <Figure label="Tokens written">{compact(run.tokens)}</Figure>}
      {filtered && run.tokens_per_character !== null && <Figure label="Tokens kept">{about(characters * run.tokens_per_character)}</Figure>}
    </dl>
  );
}

const W = 1040, H = 346, TOP = 34, BAND = 165, FOOT = H - 78;

/** A name in one or two lines, parted at its hyphen. */
const inTwo = (name: string): string[] => (name.length < 12 ? ["", name] : name.split(/(?<=-)/, 2).concat("").slice(0, 2));

/** A river that narrows at each stage; what leaves it flows down to the stage's name and number. */
function Picture({ flows, unit, params }: { flows: Flow[]; unit: Unit; params: Params }) {
  const all = flows[0].into || 1;
  const step = W / (flows.length + 1);
  const high = (n: number) => (n ? Math.max(1.5, (BAND * n) / all) : 0);
  return (
    <svg class="river" viewBox={`0 0 ${W} ${H}`} role="group" aria-label={`${unit} through the stages`}>
      {flows.map((s, i) => {
        const x = i * step;
        const into = high(s.into), left = high(s.into - s.gone);
        const out = high(s.gone);
        const turn = x + step * 0.42, end = x + step;
        const wide = Math.min(out, step * 0.5);
        const name = `${s.stage}: ${count(s.gone)} of ${count(s.into)} ${unit} removed`;
        return (
          <g key={s.stage}>
            <path class="kept" d={`M${x},${TOP} H${end} V${TOP + left} C${turn + step * 0.3},${TOP + left} ${turn + step * 0.25},${TOP + left} ${turn},${TOP + left} L${turn},${TOP + Math.max(left, into - out)} L${x},${TOP + Math.max(left, into - out)} Z`} />
            <text class="in" x={x + 6} y={TOP - 10}>{compact(s.into)}</text>
            <a href={link("documents", { ...filtersOf(params), stage: s.stage })} aria-label={name}>
              <title>{name}</title>
              {s.gone > 0 && (
                <path class="removed" d={`M${x},${TOP + left} H${turn} C${turn + step * 0.28},${TOP + left} ${turn + step * 0.28},${TOP + left + 20} ${turn + step * 0.28},${Math.max(TOP + into + 24, FOOT - 30)} V${FOOT} H${turn + step * 0.28 - wide} V${Math.max(TOP + into + 30, FOOT - 30)} C${turn + step * 0.28 - wide},${TOP + into} ${turn - 4},${TOP + into} ${x},${TOP + into} Z`} />
              )}
              <rect class="hit" x={x} y={FOOT - 4} width={step} height={H - FOOT + 4} />
              {inTwo(s.stage).map((part, j) => <text class="stage" key={j} x={turn + step * 0.28} y={FOOT + 18 + 16 * j} text-anchor="end">{part}</text>)}
              <text class={`out ${s.gone ? "" : "none"}`} x={turn + step * 0.28} y={FOOT + 56} text-anchor="end">{s.gone ? `−${compact(s.gone)}` : "none"}</text>
            </a>
          </g>
        );
      })}
      {(() => {
        const last = flows[flows.length - 1];
        const kept = last.into - last.gone;
        const x = flows.length * step;
        return (
          <a href={link("documents", { ...filtersOf(params), stage: "kept" })} aria-label={`kept: ${count(kept)} ${unit}`}>
            <path class="kept end" d={`M${x},${TOP} H${W - 24} L${W - 4},${TOP + high(kept) / 2} L${W - 24},${TOP + high(kept)} H${x} Z`} />
            <text class="in" x={x + 6} y={TOP - 10}>{compact(kept)} kept</text>
          </a>
        );
      })()}
    </svg>
  );
}

function Steps({ flows, unit, run, params }: { flows: Flow[]; unit: Unit; run: Run; params: Params }) {
  const all = flows[0].into || 1;
  return (
    <ol class="steps">
      {flows.map((s) => (
        <li key={s.stage}>
          <div class="head">
            <a class="stage" href={link("funnel", toggled(params, "stage", s.stage))} aria-current={params.stage === s.stage ? "true" : undefined}>{s.stage}</a>
            <span class="n">{count(s.into - s.gone)} <small>of {count(s.into)}</small></span>
          </div>
          <span class="track" aria-hidden="true">
            <i class="kept" style={{ inlineSize: `${(100 * (s.into - s.gone)) / all}%` }} />
            <i class="removed" style={{ inlineSize: `${(100 * s.gone) / all}%` }} />
          </span>
          {s.removed.length > 0 && <Reasons flow={s} unit={unit} run={run} params={params} />}
        </li>
      ))}
    </ol>
  );
}

/** The rules of a stage by what they remove; those beyond the first twelve on demand. */
function Reasons({ flow, unit, run, params }: { flow: Flow; unit: Unit; run: Run; params: Params }) {
  const [all, setAll] = useState(false);
  const more = flow.removed.length - 12;
  return (
    <ul class="reasons">
      {(all ? flow.removed : flow.removed.slice(0, 12)).map((r) => (
        <li key={r.reason}>
          <a href={link("documents", { ...filtersOf(params), stage: flow.stage, rule: r.reason })}
            title={`${count(r.size)} ${unit}, ${share(r.size, flow.into)} of what the stage read. ${run.meanings[r.reason] ?? ""}`}>
            {r.reason} <b>{compact(r.size)}</b>
          </a>
        </li>
      ))}
      {more > 0 && !all && <li><button type="button" class="copy" onClick={() => setAll(true)}>{more === 1 ? "1 more rule" : `${more} more rules`}</button></li>}
    </ul>
  );
}
