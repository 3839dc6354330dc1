"""Prints the OpenAPI document: `python -m backend.openapi > frontend/openapi.json`."""

import json
import sys

from backend.main import create_app
from backend.settings import Settings

if __name__ == "__main__":
    app = create_app(Settings.model_validate({"DATABASE_URL": "postgresql://unused"}))
    json.dump(app.openapi(), sys.stdout, indent=2, sort_keys=True)
    sys.stdout.write("\n")
