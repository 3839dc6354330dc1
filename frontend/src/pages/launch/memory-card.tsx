import type { Schemas } from "../../api/client.ts";
import { formatNumber, plural } from "../../format/number.ts";

type MemoryEstimate = Schemas["MemoryEstimate"];
type DeviceMemory = Schemas["DeviceMemory"];

/** "16 GPUs, about 61.3 of 80.0 GiB each": what the launch bar says of GPUs; nothing where a run takes none. */
export function summarizeMemory(memory: MemoryEstimate | null): string[] {
  if (memory?.unit !== "GPU") return [];
  const count = memory.devices.reduce((sum, { num_devices }) => sum + num_devices, 0);
  const most = Math.max(...memory.devices.map(({ total_gib }) => total_gib));
  return [`${plural(count, "GPU")}, about ${ofCapacity(most, memory.capacity_gib)} each`];
}

/** "11.5 MiB", "61.3 GiB". */
export function memoryInWords(gib: number): string {
  return gib < 0.1 ? `${formatNumber(gib * 1024)} MiB` : `${formatNumber(gib)} GiB`;
}

function ofCapacity(gib: number, capacity: number | null): string {
  return capacity === null ? memoryInWords(gib) : `${formatNumber(gib)} of ${formatNumber(capacity)} GiB`;
}

interface MemoryCardProps {
  /** Null where it cannot be told. */
  memory: MemoryEstimate | null;
  /** The settings have problems: it is of those before. */
  isOutdated: boolean;
}

/** What the run is expected to hold in memory, and of what that is made. */
export function MemoryCard({ memory, isOutdated }: MemoryCardProps) {
  return (
    <section className="memory" aria-label="Expected memory">
      <h3>Expected memory</h3>
      {memory ? (
        <>
          {memory.devices.map((device) => (
            <Device key={device.role} device={device} memory={memory} />
          ))}
          <p className="muted small">
            {isOutdated && "Of the settings before they had problems. "}
            An estimate by arithmetic from the settings; libraries and fragmentation take more or less.
          </p>
        </>
      ) : (
        <p className="muted small">
          Not known: the policy's shape is in its checkpoint. Say whose it is under Policy, Model, and it is
          estimated here.
        </p>
      )}
    </section>
  );
}

function Device({ device, memory }: { device: DeviceMemory; memory: MemoryEstimate }) {
  const { unit, capacity_gib: capacity } = memory;
  const each = device.num_devices === 1 ? "" : " each";
  return (
    <details className="memory-device">
      <summary>
        <span className="memory-role">
          {capital(device.role)}, {counted(device.num_devices, unit)}
        </span>{" "}
        {capacity !== null && (
          <span
            className="memory-bar"
            aria-hidden="true"
            style={
              { "--share": `${Math.min(100, (device.total_gib / capacity) * 100)}%` } as React.CSSProperties
            }
          />
        )}
        <span>
          {ofCapacity(device.total_gib, capacity)}
          {each}
        </span>
      </summary>
      <Parts device={device} unit={unit} />
    </details>
  );
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function counted(count: number, unit: string): string {
  return unit === "process" && count !== 1 ? `${count} processes` : plural(count, unit);
}

function Parts({ device, unit }: { device: DeviceMemory; unit: string }) {
  return (
    <table className="table">
      <caption className="visually-hidden">
        {device.role}, memory of each {unit}
      </caption>
      <tbody>
        {device.parts.map(({ name, gib }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td className="number">{memoryInWords(gib)}</td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">together</th>
          <td className="number">{memoryInWords(device.total_gib)}</td>
        </tr>
      </tfoot>
    </table>
  );
}
