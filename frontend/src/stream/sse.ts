/** One server-sent event. */
export interface ServerEvent {
  event: string;
  data: string;
  id: string | null;
}

/**
 * Cuts a stream of text into events as the HTML standard says: fields by line, an event by blank line, comments
 * ignored, the last id kept. A reader of our own, since the browser's EventSource cannot resume after an HTTP error
 * and does not show whether it is connected.
 */
export class EventParser {
  private buffer = "";
  private data: string[] = [];
  private event = "";
  private id: string | null = null;

  /** Takes the next piece of text and returns the events that it completed. */
  push(text: string): ServerEvent[] {
    this.buffer += text;
    const lines = this.buffer.split(/\r\n|\n|\r(?!$)/);
    this.buffer = lines.pop() ?? "";
    return lines.flatMap((line) => this.takeLine(line) ?? []);
  }

  private takeLine(line: string): ServerEvent | null {
    if (line === "") return this.complete();
    if (line.startsWith(":")) return null;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.data.push(value);
    else if (field === "event") this.event = value;
    else if (field === "id" && !value.includes("\0")) this.id = value;
    return null;
  }

  private complete(): ServerEvent | null {
    const { data, event, id } = this;
    this.data = [];
    this.event = "";
    if (data.length === 0) return null;
    return { event: event || "message", data: data.join("\n"), id };
  }
}
