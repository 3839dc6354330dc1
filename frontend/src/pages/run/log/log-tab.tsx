import { useEffect, useLayoutEffect, useRef, useState } from "react";
import type { RunRead } from "../../../api/client.ts";
import { Empty, ProblemNote, Waiting } from "../../../design/states.tsx";
import { formatClock, formatExact } from "../../../format/time.ts";
import { type LogLine, withoutAnsi } from "./lines.ts";
import { type LogFilter, useLog } from "./use-log.ts";

const TYPING_PAUSE_MS = 250;

export function LogTab({ run }: { run: RunRead }) {
  const [filter, setFilter] = useState<LogFilter>({ level: "", search: "" });
  const log = useLog(run.id, filter);
  const isFiltered = filter.level !== "" || filter.search !== "";
  return (
    <>
      <LogFilterBar filter={filter} onChange={setFilter} />
      {log.error !== null && <ProblemNote error={log.error} />}
      {!log.isLoaded && log.error === null && <Waiting>Fetching the log.</Waiting>}
      {log.isLoaded && log.lines.length === 0 && (
        <Empty title={isFiltered ? "No line matches." : "The log is empty so far."}>
          {!isFiltered && <p>The worker's first lines appear here by themselves.</p>}
        </Empty>
      )}
      {log.lines.length > 0 && <LogLines lines={log.lines} hasOlder={log.hasOlder} onOlder={log.loadOlder} />}
    </>
  );
}

function LogFilterBar({ filter, onChange }: { filter: LogFilter; onChange: (filter: LogFilter) => void }) {
  const [text, setText] = useState(filter.search);
  useEffect(() => {
    if (text === filter.search) return;
    const timer = setTimeout(() => onChange({ ...filter, search: text }), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, filter, onChange]);
  return (
    <search className="filter-bar">
      <label>
        <span className="visually-hidden">Lines of at least this severity</span>
        <select
          className="input"
          value={filter.level}
          onChange={(event) => onChange({ ...filter, level: event.target.value as LogFilter["level"] })}
        >
          <option value="">All lines</option>
          <option value="info">Info and above</option>
          <option value="warning">Warnings and errors</option>
          <option value="error">Errors</option>
        </select>
      </label>
      <input
        type="search"
        className="input"
        aria-label="Search the log"
        placeholder="Search the log"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
    </search>
  );
}

interface LogLinesProps {
  lines: LogLine[];
  hasOlder: boolean;
  onOlder: () => void;
}

/** Follows the end while the reader is there; otherwise stays where they are and counts what is new. */
function LogLines({ lines, hasOlder, onOlder }: LogLinesProps) {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const [seenId, setSeenId] = useState(0);
  const lastId = lines.at(-1)?.id ?? 0;
  const firstId = lines[0]?.id ?? 0;
  useKeepPosition(box, firstId);

  useLayoutEffect(() => {
    if (!box.current || !isAtEnd.current) return;
    box.current.scrollTop = box.current.scrollHeight;
    setSeenId(lastId);
  }, [lastId]);

  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current as HTMLDivElement;
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < 24;
    if (isAtEnd.current) setSeenId(lastId);
  };
  const toEnd = () => box.current?.scrollTo({ top: box.current.scrollHeight });
  const numNew = lines.length - (lines.findLastIndex(({ id }) => id <= seenId) + 1);
  return (
    <div className="log">
      <div
        className="log-lines"
        ref={box}
        onScroll={onScroll}
        role="log"
        aria-live="off"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolled region must be reachable by keyboard.
        tabIndex={0}
        aria-label="Log"
      >
        {hasOlder && (
          <button type="button" className="button" onClick={onOlder}>
            Show older lines
          </button>
        )}
        {lines.map((line) => (
          <Line key={line.id} line={line} />
        ))}
      </div>
      {numNew > 0 && (
        <button type="button" className="button log-new" onClick={toEnd}>
          {numNew} new {numNew === 1 ? "line" : "lines"} ↓
        </button>
      )}
    </div>
  );
}

/** When older lines come in above, what the reader looks at stays in its place. */
function useKeepPosition(box: React.RefObject<HTMLDivElement | null>, firstId: number): void {
  const before = useRef({ firstId, height: 0 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const { firstId: oldFirst, height } = before.current;
    if (firstId < oldFirst) element.scrollTop += element.scrollHeight - height;
    before.current = { firstId, height: element.scrollHeight };
  });
}

function Line({ line }: { line: LogLine }) {
  return (
    <div className={`log-line level-${line.level}`}>
      <time
        dateTime={line.time}
        title={`${formatExact(line.time)} · attempt ${line.attempt} · ${line.emitter}`}
      >
        {formatClock(line.time)}
      </time>
      <span className="log-level">{line.level}</span>
      <span className="log-message">{withoutAnsi(line.message)}</span>
    </div>
  );
}
