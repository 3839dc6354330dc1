"""How this service speaks to its broker, as sender and as worker."""

from celery import Celery


def configured(redis_url: str) -> Celery:
    """An app that can send to the broker, and knows no tasks."""
    app = Celery("foredeck", broker=redis_url, set_as_current=False)
    app.conf.update(
        task_default_queue="foredeck",
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={"socket_connect_timeout": 0.5, "socket_timeout": 5, "visibility_timeout": 300},
        timezone="UTC",
    )
    return app
