"""Who may do what: tokens, browser sessions, login links and the audit log."""
