import type { Schemas } from "../../api/client.ts";
import { formatNumber, plural } from "../../format/number.ts";

type MemoryEstimate = Schemas["MemoryEstimate"];
type DeviceMemory = Schemas["DeviceMemory"];

/** "16 GPUs, about 61.3 of 80 GiB each": what the launch bar says of GPUs; nothing where a run takes none. */
export function summarizeMemory(memory: MemoryEstimate | null): string[] {
  if (memory?.unit !== "GPU") return [];
  const count = memory.devices.reduce((sum, { num_devices }) => sum + num_devices, 0);
  const most = Math.max(...memory.devices.map(({ total_gib }) => total_gib));
  const capacity = memory.capacity_gib === null ? "" : ` of ${formatNumber(memory.capacity_gib)}`;
  return [`${plural(count, "GPU")}, about ${formatNumber(most)}${capacity} GiB each`];
}

/** What the run is expected to hold in memory, and of what that is made. */
export function MemoryCard({ memory }: { memory: MemoryEstimate }) {
  return (
    <details className="card memory">
      <summary>
        <h2>Expected memory</h2>
        <span className="muted small">
          {memory.devices.map((device) => inWords(device, memory.unit)).join("; ")}
        </span>
      </summary>
      <div className="memory-devices">
        {memory.devices.map((device) => (
          <Parts key={device.role} device={device} unit={memory.unit} />
        ))}
      </div>
      <p className="muted small">
        An estimate by arithmetic from the settings above; libraries and fragmentation take more or less.
      </p>
    </details>
  );
}

function inWords(device: DeviceMemory, unit: string): string {
  const each = device.num_devices === 1 ? "" : " each";
  const name = device.num_devices === 1 ? unit : `${unit}${unit === "process" ? "es" : "s"}`;
  return `${device.role}: ${device.num_devices} ${name}, ${formatNumber(device.total_gib)} GiB${each}`;
}

function Parts({ device, unit }: { device: DeviceMemory; unit: string }) {
  return (
    <table className="table">
      <caption>
        {device.role}, GiB a {unit}
      </caption>
      <tbody>
        {device.parts.map(({ name, gib }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td className="number">{formatNumber(gib)}</td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">together</th>
          <td className="number">{formatNumber(device.total_gib)}</td>
        </tr>
      </tfoot>
    </table>
  );
}
