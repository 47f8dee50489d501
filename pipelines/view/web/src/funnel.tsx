// The funnel as a picture, and what is in it.
import { compact, count, share } from "./format";
import { type Params, type Run, type Stage, type Values, filtersOf, link, toggled, useAnswer } from "./state";
import { Card, Facet, Figure, Waiting } from "./ui";

const TITLES: Record<string, string> = {
  language: "Languages", domain: "Domains", topic: "Topics", format: "Formats", host: "Hosts", input: "Inputs", year: "Years",
};

export function Funnel({ run, params }: { run: Run; params: Params }) {
  const filters = filtersOf(params);
  const funnel = useAnswer<Stage[]>("funnel", filters);
  const values = useAnswer<Values>("values", { ...filters, most: "8" });
  return (
    <>
      <Waiting asked={funnel}>
        {(stages) => (
          <>
            <Totals stages={stages} run={run} filtered={Object.keys(filters).length > 0} />
            <Card title="From records to training data" class="wide">
              <Picture stages={stages} params={params} />
              <Steps stages={stages} params={params} />
            </Card>
          </>
        )}
      </Waiting>
      <Waiting asked={values}>
        {(found) => (
          <div class="facets">
            {run.dimensions.map((name) => (
              <Facet key={name} title={TITLES[name] ?? name} name={name} view="funnel" params={params}
                values={found[name].values} all={found[name].all} />
            ))}
          </div>
        )}
      </Waiting>
    </>
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
      {!filtered && run.tokens !== null && <Figure label="Tokens written">{compact(run.tokens)}</Figure>}
      {filtered && run.tokens_per_character !== null && <Figure label="Tokens kept, about">{compact(characters * run.tokens_per_character)}</Figure>}
    </dl>
  );
}

const W = 1040, H = 346, TOP = 34, BAND = 165, FOOT = H - 78;

/** A name in one or two lines, parted at its hyphen. */
const inTwo = (name: string): string[] => (name.length < 12 ? ["", name] : name.split(/(?<=-)/, 2).concat("").slice(0, 2));

/** A river that narrows at each stage; what leaves it flows down to the stage's name and number. */
function Picture({ stages, params }: { stages: Stage[]; params: Params }) {
  const all = stages[0].documents_in || 1;
  const step = W / (stages.length + 1);
  const high = (n: number) => (n ? Math.max(1.5, (BAND * n) / all) : 0);
  return (
    <svg class="river" viewBox={`0 0 ${W} ${H}`} role="group" aria-label="Documents through the stages">
      {stages.map((s, i) => {
        const x = i * step;
        const into = high(s.documents_in), left = high(s.documents_in - s.documents_removed);
        const out = high(s.documents_removed);
        const turn = x + step * 0.42, end = x + step;
        const wide = Math.min(out, step * 0.5);
        const name = `${s.stage}: ${count(s.documents_removed)} of ${count(s.documents_in)} documents removed`;
        return (
          <g key={s.stage}>
            <path class="kept" d={`M${x},${TOP} H${end} V${TOP + left} C${turn + step * 0.3},${TOP + left} ${turn + step * 0.25},${TOP + left} ${turn},${TOP + left} L${turn},${TOP + Math.max(left, into - out)} L${x},${TOP + Math.max(left, into - out)} Z`} />
            <text class="in" x={x + 6} y={TOP - 10}>{compact(s.documents_in)}</text>
            <a href={link("documents", { ...filtersOf(params), stage: s.stage })} aria-label={name}>
              <title>{name}</title>
              {s.documents_removed > 0 && (
                <path class="removed" d={`M${x},${TOP + left} H${turn} C${turn + step * 0.28},${TOP + left} ${turn + step * 0.28},${TOP + left + 20} ${turn + step * 0.28},${Math.max(TOP + into + 24, FOOT - 30)} V${FOOT} H${turn + step * 0.28 - wide} V${Math.max(TOP + into + 30, FOOT - 30)} C${turn + step * 0.28 - wide},${TOP + into} ${turn - 4},${TOP + into} ${x},${TOP + into} Z`} />
              )}
              <rect class="hit" x={x} y={FOOT - 4} width={step} height={H - FOOT + 4} />
              {inTwo(s.stage).map((part, j) => <text class="stage" key={j} x={turn + step * 0.28} y={FOOT + 18 + 16 * j} text-anchor="end">{part}</text>)}
              <text class={`out ${s.documents_removed ? "" : "none"}`} x={turn + step * 0.28} y={FOOT + 56} text-anchor="end">{s.documents_removed ? `−${compact(s.documents_removed)}` : "none"}</text>
            </a>
          </g>
        );
      })}
      {(() => {
        const last = stages[stages.length - 1];
        const kept = last.documents_in - last.documents_removed;
        const x = stages.length * step;
        return (
          <a href={link("documents", { ...filtersOf(params), stage: "kept" })} aria-label={`kept: ${count(kept)} documents`}>
            <path class="kept end" d={`M${x},${TOP} H${W - 24} L${W - 4},${TOP + high(kept) / 2} L${W - 24},${TOP + high(kept)} H${x} Z`} />
            <text class="in" x={x + 6} y={TOP - 10}>{compact(kept)} kept</text>
          </a>
        );
      })()}
    </svg>
  );
}

function Steps({ stages, params }: { stages: Stage[]; params: Params }) {
  const all = stages[0].documents_in || 1;
  return (
    <ol class="steps">
      {stages.map((s) => (
        <li key={s.stage}>
          <div class="head">
            <a class="stage" href={link("funnel", toggled(params, "stage", s.stage))} aria-current={params.stage === s.stage ? "true" : undefined}>{s.stage}</a>
            <span class="n">{count(s.documents_in - s.documents_removed)} <small>of {count(s.documents_in)}</small></span>
          </div>
          <span class="track" aria-hidden="true">
            <i class="kept" style={{ inlineSize: `${(100 * (s.documents_in - s.documents_removed)) / all}%` }} />
            <i class="removed" style={{ inlineSize: `${(100 * s.documents_removed) / all}%` }} />
          </span>
          {s.removed.length > 0 && (
            <ul class="reasons">
              {s.removed.slice(0, 12).map((r) => (
                <li key={r.reason}>
                  <a href={link("documents", { ...filtersOf(params), stage: s.stage, rule: r.reason })}
                    title={`${share(r.documents, s.documents_in)} of what the stage read`}>
                    {r.reason} <b>{compact(r.documents)}</b>
                  </a>
                </li>
              ))}
              {s.removed.length > 12 && <li class="note">and {s.removed.length - 12} more rules</li>}
            </ul>
          )}
        </li>
      ))}
    </ol>
  );
}
