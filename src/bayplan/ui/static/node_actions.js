// Actions on a node: cordon, drain, delete. They use the Kubernetes API as kubectl does, and those that remove pods ask
// for confirmation.

import { counted } from "./format.js";
import { objectPath, call, send } from "./service.js";
import { ask, perform } from "./parts.js";

/** @param {string} name @param {boolean} on */
export function cordon(name, on) {
  return perform(`${on ? "Cordon" : "Uncordon"} ${name}`, async () => {
    await send(objectPath("core", "v1", "nodes", "", name), {
      method: "PATCH",
      type: "application/merge-patch+json",
      body: JSON.stringify({ spec: { unschedulable: on ? true : null } }),
    });
  });
}

/** @param {string} name @param {number} pods how many run on it */
export async function drain(name, pods) {
  const sure = await ask({
    title: `Drain ${name}?`,
    text: [
      `It is cordoned, and ${counted(pods, "pod")} on it are evicted. Pods of DaemonSets stay, and disruption budgets are honoured.`,
    ],
    yes: "Drain",
  });
  if (!sure) return false;
  return perform(`Drain ${name}`, async () => {
    const answer = await call("POST /nodes/{name}/drain", { name });
    const { evicted, refused } = answer;
    return `Drain ${name}: ${counted(evicted, "pod")} evicted${refused.length ? `, ${refused.length} refused: ${refused[0].message}` : ""}.`;
  });
}

/** @param {string} name @param {number} pods how many run on it */
export async function removeNode(name, pods) {
  const sure = await ask({
    title: `Delete the node ${name}?`,
    text: [
      pods
        ? `${counted(pods, "pod")} on it will be deleted by the pod garbage collector; their controllers create new ones.`
        : "No pods are on it.",
    ],
    yes: "Delete",
    danger: true,
  });
  if (!sure) return false;
  return perform(`Delete ${name}`, async () => {
    await send(objectPath("core", "v1", "nodes", "", name), { method: "DELETE" });
  });
}
