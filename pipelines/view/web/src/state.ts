// The address holds the whole state: `#/signals?limit=20&language=de`. Answers come from the server.
import { useEffect, useRef, useState } from "preact/hooks";

export type Params = Record<string, string>;
export interface Route { view: string; params: Params }

/** What documents can be filtered by; these stay when the view changes. */
export const FILTERS = ["stage", "rule", "language", "domain", "topic", "format", "host", "input", "year"];

export function parse(hash: string): Route {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  return { view: path || "funnel", params: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

export function link(view: string, params: Params): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, v]) => v !== "")).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

export const filtersOf = (params: Params): Params =>
  Object.fromEntries(Object.entries(params).filter(([k]) => FILTERS.includes(k)));

/** The same filters (and the funnel's unit) with one set, or taken away where it is set already. */
export function toggled(params: Params, name: string, value: string): Params {
  const found = filtersOf(params);
  if (params.unit) found.unit = params.unit;
  if (found[name] === value) delete found[name];
  else found[name] = value;
  return found;
}

export function go(view: string, params: Params, replace = false): void {
  const to = link(view, params);
  if (replace) {
    history.replaceState(null, "", to);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = to;
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => setRoute(parse(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

export async function ask<T>(name: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
  const query = new URLSearchParams(Object.entries(params).filter(([, v]) => v !== ""));
  let answer: Response;
  try {
    answer = await fetch(`api/${name}?${query}`, { signal });
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new Error("The server doesn’t answer. Is `curate view` still running?");
  }
  return read<T>(answer);
}

async function read<T>(answer: Response): Promise<T> {
  const value = await answer.json().catch(() => ({ error: `The server said ${answer.status}.` }));
  if (!answer.ok) throw new Error(value.error);
  return value as T;
}

export interface Asked<T> { data?: T; error?: string; loading: boolean }

/** An answer, and the one before it until the next is there. */
export function useAnswer<T>(name: string | null, params: Params = {}): Asked<T> {
  const [state, setState] = useState<Asked<T>>({ loading: true });
  const key = JSON.stringify([name, params]);
  const asked = useRef("");
  useEffect(() => {
    if (name === null) return;
    const abort = new AbortController();
    const same = asked.current === name;
    asked.current = name;
    setState((old) => ({ data: same ? old.data : undefined, loading: true }));
    ask<T>(name, params, abort.signal).then(
      (data) => setState({ data, loading: false }),
      (error: Error) => error.name !== "AbortError" && setState({ error: error.message, loading: false }),
    );
    return () => abort.abort();
  }, [key]);
  return state;
}

export interface Run {
  run: string; recipe: { name: string; sha256: string }; root: string; stages: string[]; dimensions: string[];
  documents: number; kept: number; records: number | null; tokens: number | null; distinct_tokens: number | null; epochs: number | null; tokens_per_character: number | null;
  stale: string[]; unfinished: string[]; has_signals: boolean; measured: boolean; has_inputs: boolean; compared: string | null;
  /** What signals and reasons measure, in sentences. */
  meanings: Record<string, string>;
}
export interface Doc {
  row: number; url: string; title?: string | null; stage: string | null; reason: string | null;
  value: number | null; value_text: string | null; characters: number; tokens: number | null; date: string | null;
  language: string; domain: string; topic: string; format: string; host: string; input: string; year: string;
  text?: string; passage?: string; signal?: number; id?: string;
}
export interface Stage {
  stage: string; documents_in: number; documents_removed: number; characters_in: number; characters_removed: number;
  removed: { reason: string; documents: number; characters: number }[];
}
export interface Value { value: string; documents: number; kept: number; removed: number; characters: number; tokens: number }
export type Values = Record<string, { values: Value[]; all: number }>;
