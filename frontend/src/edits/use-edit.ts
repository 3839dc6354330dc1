import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { ApiProblem } from "../api/problem.ts";
import { type Editable, EditConflict, saveEdit } from "./editable.ts";

/**
 * A form's edit of something that others may edit, too. The form shows `base` where nothing was typed. After a conflict
 * it goes on from what is there now: what was typed stays, and saving again is meant. onChanged gets what is there, saved
 * or found.
 */
export function useEdit<T extends object, Body extends object>(
  editable: Editable<T, Body>,
  seen: T,
  onChanged: (current: T) => void,
  onClose: () => void,
) {
  const [base, setBase] = useState(seen);
  const save = useMutation({
    mutationFn: (body: Body) => saveEdit(editable, base, body),
    onSuccess: (saved) => {
      onChanged(saved);
      onClose();
    },
    onError: (error) => {
      if (!(error instanceof EditConflict)) return;
      setBase(error.theirs as T);
      onChanged(error.theirs as T);
    },
  });
  const conflict = save.error instanceof EditConflict ? save.error : null;
  const refused = save.error instanceof ApiProblem ? save.error.errors : [];
  return { base, save, conflict, refused };
}
