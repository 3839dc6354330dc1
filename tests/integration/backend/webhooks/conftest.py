from uuid import UUID

import pytest
from sqlalchemy import select

from backend.auth import repository as auth
from backend.models import Webhook, WebhookDelivery


@pytest.fixture
def project_id(database) -> UUID:
    """Of the project `default`."""
    with database.transaction() as session:
        project = auth.get_project(session, "default")
        assert project is not None
        return project.id


@pytest.fixture
def insert_webhook(database, project_id):
    """A row as it is stored; returns its id."""

    def insert(**values):
        row = {"project_id": project_id, "name": "test", "url": "https://hook.example/", "events": ["run.failed"]}
        with database.transaction() as session:
            webhook = Webhook(**{**row, "secret": "", **values})
            session.add(webhook)
            session.flush()
            return webhook.id

    return insert


@pytest.fixture
def deliveries(database):
    """All rows, oldest first."""

    def read(**where):
        with database.transaction() as session:
            statement = select(WebhookDelivery).filter_by(**where).order_by(WebhookDelivery.created_at)
            return session.scalars(statement).all()

    return read
